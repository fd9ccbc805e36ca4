"""Indexing without a worker, and an embedder with predictable vectors."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from holdfast.clock import utc_clock
from holdfast.search.index import Indexer
from holdfast.search.model import Vector
from holdfast.search.ports import EmbedFault
from holdfast.search.tokens import tokenize
from holdfast.secret import Secret
from holdfast.store.model import Stage
from holdfast.store.ports import IndexQueue

LATER = timedelta(hours=1)
_LEASE_MS = 60_000


def drain(queue: IndexQueue, indexer: Indexer, *, meaning: bool = True) -> int:
    """Do every job that is due, words first; returns how many passes over words and meaning there were."""
    done = 0
    while jobs := queue.claim(20, 60_000, utc_clock() + LATER, Stage.WORDS):
        without_vectors = indexer.index_words(jobs)
        for job, is_owed in zip(jobs, without_vectors, strict=True):
            queue.finish(job, utc_clock(), Stage.MEANING if is_owed else None)
        done += len(jobs)
    while meaning and (jobs := queue.claim(20, 60_000, utc_clock() + LATER, Stage.MEANING)):
        for job in jobs:
            indexer.index_meaning(job, None)
            queue.finish(job, utc_clock())
        done += len(jobs)
    return done


class Topics:
    """Embeds a text by how often it speaks of each topic; a topic is a row of words. Counts the texts it was given."""

    def __init__(self, *topics: str, model: str = "topics", needs_key: bool = False) -> None:
        self.model = model
        self.needs_key = needs_key
        self.embedded: list[str] = []
        self.is_down = False
        self._topics = [set(tokenize(topic)) for topic in topics]

    def embed(self, texts: Sequence[str], key: Secret | None, check: Callable[[], None]) -> list[Vector]:
        """Return a vector of length one for each text."""
        if self.is_down:
            raise EmbedFault("the model is down")
        self.embedded += texts
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        tokens = tokenize(text)
        counts = [1e-3 + sum(token in topic for token in tokens) for topic in self._topics]
        length = sum(count * count for count in counts) ** 0.5
        return [count / length for count in counts]


def emptied(queue: IndexQueue) -> IndexQueue:
    """Return the queue after everything that earlier tests left is done."""
    for stage in Stage:
        for job in queue.claim(100_000, _LEASE_MS, datetime.now(UTC) + timedelta(days=1), stage):
            queue.finish(job, datetime.now(UTC))
    return queue
