"""Builds the models that the settings name; nothing is loaded or sent yet."""

import logging
import os

from holdfast.adapters.models.cohere import CohereReranker
from holdfast.adapters.models.minilm import (
    ModelFiles,
    OnnxEmbedder,
    bundled_files,
    has_tokenizer_library,
    load_tokenizer,
    missing_modules,
)
from holdfast.adapters.models.openai import OpenAIEmbedder
from holdfast.config.settings import EmbedderSettings, RerankSettings
from holdfast.search.ports import Embedder, EmbedFault, Reranker

_log = logging.getLogger(__name__)


def build_embedder(settings: EmbedderSettings) -> Embedder | None:
    """Return the embedder; None, for search by words alone, when the settings say so or a library is missing."""
    if settings.kind == "none":
        return None
    if settings.kind == "openai":
        return OpenAIEmbedder(settings.endpoint, settings.model, settings.timeout_ms / 1000)
    fault = local_fault(settings)
    if fault is not None:
        _log.warning("search works by words alone: %s", fault)
        return None
    return OnnxEmbedder(_model_files(settings), settings.threads)


def for_queries(embedder: Embedder | None) -> Embedder | None:
    """Return the embedder for searches, which cannot wait as long as indexing can."""
    return embedder.for_queries() if isinstance(embedder, OpenAIEmbedder) else embedder


def build_reranker(settings: RerankSettings) -> Reranker | None:
    """Return the reranker; None when no endpoint is set."""
    return CohereReranker(settings.endpoint, settings.model) if settings.endpoint else None


def local_fault(settings: EmbedderSettings) -> str | None:
    """Return why the model on this machine cannot be used, None when it can; no model is loaded."""
    if missing := missing_modules():
        return f"not installed: {', '.join(missing)}"
    try:
        files = _model_files(settings) or bundled_files()
        if absent := [path for path in (files.model, files.tokenizer) if not os.path.isfile(path)]:
            return f"no such file: {', '.join(absent)}"
        if settings.path and not has_tokenizer_library():
            load_tokenizer(files)
    except EmbedFault as error:
        return str(error)
    return None


def embedder_fault(settings: EmbedderSettings) -> str | None:
    """Return what is wrong with the model, None when it embeds a word; one on this machine is loaded for that."""
    if settings.kind != "minilm":
        return None
    fault = local_fault(settings)
    if fault is not None:
        return fault
    try:
        OnnxEmbedder(_model_files(settings), settings.threads).embed(["a word"], None, lambda: None)
    except EmbedFault as error:
        return str(error)
    return None


def _model_files(settings: EmbedderSettings) -> ModelFiles | None:
    """Return the files that the settings name, None for the built-in model; the tokenizer may stand beside the model."""
    if not settings.path:
        return None
    model = os.path.abspath(os.path.expanduser(settings.path))
    if settings.tokenizer:
        return ModelFiles(model, os.path.abspath(os.path.expanduser(settings.tokenizer)))
    beside = [os.path.join(os.path.dirname(model), name) for name in ("tokenizer.json", "vocab.txt")]
    return ModelFiles(model, next(filter(os.path.isfile, beside), beside[0]))
