"""Indexes files: chunks and words in one step, vectors in another one that waits for the model."""

from collections.abc import Callable, Sequence
from datetime import datetime

from holdfast.clock import utc_clock
from holdfast.search.chunk import split_into_chunks
from holdfast.search.model import Chunk, IndexedFile, Vector
from holdfast.search.ports import Embedder, EmbedFault, Index, VectorIndex
from holdfast.search.tokens import TOKENIZER, tokenize
from holdfast.secret import Secret
from holdfast.store.model import ClaimedJob, Operation

EMBED_BATCH = 16


class Indexer:
    """Does the jobs of a worker. A job whose file has changed since changes nothing: a later job does the work."""

    def __init__(self, index: Index, embedder: Embedder | None, now: Callable[[], datetime] = utc_clock) -> None:
        self._index = index
        self._embedder = embedder
        self._now = now

    def index_words(self, jobs: Sequence[ClaimedJob]) -> list[bool]:
        """Index the words of the jobs' files; returns for each job whether vectors are to be made next.

        Jobs of one tenant are one transaction. Written files go before deleted ones, so that a file that was moved can
        take over the vectors of its text.
        """
        needs_vectors: dict[int, bool] = {}
        for tenant in dict.fromkeys(job.tenant for job in jobs):
            tenant_jobs = [job for job in jobs if job.tenant == tenant]
            tenant_jobs.sort(key=lambda job: job.operation is Operation.DELETE)
            is_indexed = self._index.put_words(tenant, self._load(tenant, tenant_jobs), TOKENIZER, self._now())
            lacks = self._lack_vectors(tenant, tenant_jobs)
            needs_vectors.update(
                {id(job): all(both) for job, *both in zip(tenant_jobs, is_indexed, lacks, strict=True)}
            )
        return [needs_vectors[id(job)] for job in jobs]

    def index_meaning(self, job: ClaimedJob, key: Secret | None, check: Callable[[], None] = lambda: None) -> None:
        """Embed the chunks of a file that have no vector, a few at a time; EmbedFault when the model fails."""
        if self._embedder is not None:
            file = (job.tenant, job.project, job.path)
            embed_file(self._index, self._embedder, file, key, check, self._now)

    def _load(self, tenant: str, jobs: Sequence[ClaimedJob]) -> list[IndexedFile]:
        contents = self._index.load_files(tenant, [(job.project, job.path) for job in jobs])
        return [
            IndexedFile(job.project, job.path, job.version, None)
            if content is None
            else IndexedFile(job.project, job.path, content.version, chunks_with_tokens(content.data))
            for job, content in zip(jobs, contents, strict=True)
        ]

    def _lack_vectors(self, tenant: str, jobs: Sequence[ClaimedJob]) -> list[bool]:
        if self._embedder is None:
            return [False] * len(jobs)
        return self._index.lack_vectors(tenant, [(job.project, job.path) for job in jobs], self._embedder.model)


def chunks_with_tokens(data: bytes) -> list[Chunk]:
    """Return the chunks of a text with their tokens."""
    return [chunk._replace(tokens=tokenize(chunk.text)) for chunk in split_into_chunks(data)]


def embed_file(
    index: VectorIndex,
    embedder: Embedder,
    file: tuple[str, str, str],
    key: Secret | None,
    check: Callable[[], None],
    now: Callable[[], datetime] = utc_clock,
) -> None:
    """Embed the chunks of a file, given by tenant, project and path, that have no vector; EmbedFault when the model fails."""
    chunks = index.load_chunks_without_vectors(*file, embedder.model)
    for start in range(0, len(chunks), EMBED_BATCH):
        check()
        batch = chunks[start : start + EMBED_BATCH]
        vectors = embedder.embed([chunk.text for chunk in batch], key, check)
        if len(vectors) != len(batch):
            raise EmbedFault(f"the model made {len(vectors)} vectors of {len(batch)} texts")
        rows: list[tuple[int, str, Vector]] = [
            (chunk.id, chunk.content_hash, vector) for chunk, vector in zip(batch, vectors, strict=True)
        ]
        index.put_vectors(file[0], embedder.model, rows, now())
