"""Brings the index up to date with one file: its words at once, its meaning when the model gets to it."""

from collections.abc import Callable, Sequence
from datetime import datetime

from holdfast.clock import utc_clock
from holdfast.search.chunk import chunks_of
from holdfast.search.model import Chunk, IndexedFile, Vector
from holdfast.search.ports import Embedder, EmbedFault, Index, Vectors
from holdfast.search.tokens import TOKENIZER, tokens_of
from holdfast.secret import Secret
from holdfast.store.model import ClaimedJob, Operation

VECTORS_AT_ONCE = 16


def _unchecked() -> None:
    return None


class Indexer:
    """What a worker does for its jobs. A job that was overtaken changes nothing, and its successor does the work."""

    def __init__(self, index: Index, embedder: Embedder | None, now: Callable[[], datetime] = utc_clock) -> None:
        self._index = index
        self._embedder = embedder
        self._now = now

    def words(self, jobs: Sequence[ClaimedJob]) -> list[bool]:
        """Index the words of the jobs' files; returns for each whether its meaning is owed now.

        Jobs of one tenant are one transaction. Files that came are taken before files that went, so that a file that
        was moved finds the vectors of its text.
        """
        owed: dict[int, bool] = {}
        for tenant in dict.fromkeys(job.tenant for job in jobs):
            mine = [job for job in jobs if job.tenant == tenant]
            mine.sort(key=lambda job: job.operation is Operation.DELETE)
            done = self._index.put_words(tenant, self._files(tenant, mine), TOKENIZER, self._now())
            lacks = self._lack_meaning(tenant, mine)
            owed.update({id(job): all(both) for job, *both in zip(mine, done, lacks, strict=True)})
        return [owed[id(job)] for job in jobs]

    def meaning(self, job: ClaimedJob, key: Secret | None, check: Callable[[], None] = _unchecked) -> None:
        """Embed what a file has no vector for, a few chunks at a time; EmbedFault when the model fails."""
        if self._embedder is not None:
            place = (job.tenant, job.project, job.path)
            embed_file(self._index, self._embedder, place, key, check, self._now)

    def _files(self, tenant: str, jobs: Sequence[ClaimedJob]) -> list[IndexedFile]:
        contents = self._index.load_all(tenant, [(job.project, job.path) for job in jobs])
        return [
            IndexedFile(job.project, job.path, job.version, None)
            if content is None
            else IndexedFile(job.project, job.path, content.version, with_words(content.data))
            for job, content in zip(jobs, contents, strict=True)
        ]

    def _lack_meaning(self, tenant: str, jobs: Sequence[ClaimedJob]) -> list[bool]:
        if self._embedder is None:
            return [False] * len(jobs)
        return self._index.lacking(tenant, [(job.project, job.path) for job in jobs], self._embedder.model)


def with_words(data: bytes) -> list[Chunk]:
    """Return the pieces of a text with the words that they are looked up by."""
    return [chunk._replace(tokens=tokens_of(chunk.text)) for chunk in chunks_of(data)]


def embed_file(
    index: Vectors,
    embedder: Embedder,
    place: tuple[str, str, str],
    key: Secret | None,
    check: Callable[[], None],
    now: Callable[[], datetime] = utc_clock,
) -> None:
    """Embed what a file, by tenant, project and path, has no vector for; EmbedFault when the model fails."""
    wanted = index.unembedded(*place, embedder.model)
    for at in range(0, len(wanted), VECTORS_AT_ONCE):
        check()
        part = wanted[at : at + VECTORS_AT_ONCE]
        vectors = embedder.embed([chunk.text for chunk in part], key, check)
        if len(vectors) != len(part):
            raise EmbedFault(f"the model made {len(vectors)} vectors of {len(part)} texts")
        rows: list[tuple[int, str, Vector]] = [
            (chunk.id, chunk.content_hash, vector) for chunk, vector in zip(part, vectors, strict=True)
        ]
        index.put_vectors(place[0], embedder.model, rows, now())
