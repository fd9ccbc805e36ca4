"""What search needs from outside: an index for every tenant, a model that embeds, and one that reranks."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from holdfast.search.model import (
    Candidate,
    ChunkText,
    Content,
    Found,
    IndexedFile,
    KnownChunk,
    Passage,
    PendingFile,
    Scope,
    Vector,
)
from holdfast.secret import Secret


class IndexFault(Exception):
    """A database could not answer; the text holds nothing of what was asked."""


class IndexDamaged(IndexFault):
    """What the database holds cannot be read any more."""


class EmbedFault(Exception):
    """A model made no vectors; `retryable` when another attempt may."""

    def __init__(self, reason: str, *, retryable: bool = True) -> None:
        super().__init__(reason)
        self.retryable = retryable


class RerankFault(Exception):
    """A reranker failed, was too slow or gave too few scores."""


class Lookup(Protocol):
    """What a search asks of an index. Safe to use from any thread; IndexFault when the database fails."""

    def words(self, tenant: str, scope: Scope, terms: Sequence[str], limit: int) -> Found:
        """Return the best chunks of live files by BM25; a term that is repeated counts as often."""

    def nearest(self, tenant: str, scope: Scope, model: str, vector: Vector, limit: int) -> list[Candidate]:
        """Return the chunks of live files nearest to a vector, by the cosine."""

    def pending(self, tenant: str, scope: Scope, limit: int, max_bytes: int) -> list[PendingFile]:
        """Return live files whose words the index does not hold yet, newest first, so many bytes of them at most."""

    def passages(self, tenant: str, scope: Scope, chunk_ids: Sequence[int]) -> list[Passage]:
        """Return those of the chunks that are still what their live file holds."""

    def versions(self, tenant: str, places: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """Return the versions of live files by project and path."""

    def stale(self, tenant: str, model: str, limit: int) -> list[tuple[str, str]]:
        """Return project and path of indexed live files that have a chunk without a vector of a model."""


class Vectors(Protocol):
    """What embedding asks of an index."""

    def unembedded(self, tenant: str, project: str, path: str, model: str) -> list[ChunkText]:
        """Return the chunks of a path that have no vector of a model, in order."""

    def put_vectors(self, tenant: str, model: str, vectors: Sequence[tuple[int, str, Vector]], at: datetime) -> None:
        """Keep vectors by chunk id; one whose chunk is gone, or has another content_hash, is dropped."""


class Index(Lookup, Vectors, Protocol):
    """Chunks, words and vectors of every tenant."""

    def load_all(self, tenant: str, places: Sequence[tuple[str, str]]) -> list[Content | None]:
        """Return live files by project and path, None for each that is not there."""

    def lacking(self, tenant: str, places: Sequence[tuple[str, str]], model: str) -> list[bool]:
        """Return for each file, by project and path, whether a chunk of it has no vector of a model."""

    def known(self, tenant: str, project: str, path: str) -> list[KnownChunk]:
        """Return the chunks that the index holds of a path, in order."""

    def put_words(self, tenant: str, files: Sequence[IndexedFile], tokenizer: str, at: datetime) -> list[bool]:
        """Make the index hold these files, all in one transaction; False for each that was overtaken.

        A chunk whose content_hash the index knows at that path keeps its id and its vectors; a new one takes over
        the vectors of a chunk with the same text, wherever the tenant has it. A file is overtaken when it is not
        live at its version any more, or for chunks None when it is live again.
        """

    def touch(self, tenant: str, chunk_ids: Sequence[int], at: datetime) -> None:
        """Remember when chunks were last served."""

    def models(self, tenant: str) -> list[str]:
        """Return the models that a tenant has vectors of."""

    def drop_vectors(self, tenant: str, outdated: str, model: str, before: datetime, limit: int) -> int:
        """Remove some vectors of an outdated model, of chunks that have had one of this model since before then."""

    def tenants(self) -> list[str]:
        """Return every tenant that has chunks, for the worker that brings a new model's vectors."""

    def tidy(self) -> int:
        """Do what keeps searching fast and may take minutes, in the background; returns how many things were done."""

    def close(self) -> None:
        """Give up every connection."""


class Embedder(Protocol):
    """Turns texts into vectors. `model` is the key that its vectors are stored under."""

    @property
    def model(self) -> str:
        """The name of the model, and of whatever else makes its vectors what they are."""

    @property
    def needs_key(self) -> bool:
        """Whether the caller's own key goes with each request."""

    def embed(self, texts: Sequence[str], key: Secret | None, check: Callable[[], None]) -> list[Vector]:
        """Return a vector of float32 and length one for each text; EmbedFault when that fails."""


class Reranker(Protocol):
    """Scores texts by how well they answer a query."""

    def rank(self, query: str, texts: Sequence[str], key: Secret | None, timeout_ms: int) -> list[float]:
        """Return a score for each text in order, larger is better; RerankFault on any failure."""
