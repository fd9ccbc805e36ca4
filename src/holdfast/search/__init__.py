"""Finding passages by their words and by their meaning: chunk, index, retrieve, fuse, rerank."""
