"""Ports of search: the index of every tenant, the model that embeds, and the one that reranks."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from holdfast.search.model import (
    Candidate,
    ChunkText,
    Content,
    IndexedChunk,
    IndexedFile,
    Passage,
    PendingFile,
    Scope,
    Vector,
    WordMatches,
)
from holdfast.secret import Secret


class IndexFault(Exception):
    """A database could not answer; the message holds no content of files or queries."""


class IndexDamaged(IndexFault):
    """The file of an index is damaged and cannot be read."""


class EmbedFault(Exception):
    """A model made no vectors; `retryable` says whether another attempt may succeed."""

    def __init__(self, reason: str, *, retryable: bool = True) -> None:
        super().__init__(reason)
        self.retryable = retryable


class RerankFault(Exception):
    """A reranker failed, timed out or gave too few scores."""


class Lookup(Protocol):
    """The part of an index that a search uses. Safe to use from any thread; IndexFault when the database fails."""

    def find_by_words(self, tenant: str, scope: Scope, terms: Sequence[str], limit: int) -> WordMatches:
        """Return the best chunks of live files by BM25; a repeated term counts each time."""

    def find_nearest(self, tenant: str, scope: Scope, model: str, vector: Vector, limit: int) -> list[Candidate]:
        """Return the chunks of live files nearest to a vector, by cosine similarity."""

    def load_pending_files(self, tenant: str, scope: Scope, limit: int, max_bytes: int) -> list[PendingFile]:
        """Return live files whose words are not indexed yet, newest first; the first one may exceed `max_bytes`."""

    def load_passages(self, tenant: str, scope: Scope, chunk_ids: Sequence[int]) -> list[Passage]:
        """Return the passages of those chunks that are still what their live file holds."""

    def load_live_versions(self, tenant: str, files: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """Return the versions of live files by project and path."""

    def find_files_without_vectors(self, tenant: str, model: str, limit: int) -> list[tuple[str, str]]:
        """Return project and path of indexed live files that have a chunk without a vector of a model."""


class VectorIndex(Protocol):
    """The part of an index that embedding uses."""

    def load_chunks_without_vectors(self, tenant: str, project: str, path: str, model: str) -> list[ChunkText]:
        """Return the chunks of a path that have no vector of a model, in order."""

    def put_vectors(self, tenant: str, model: str, vectors: Sequence[tuple[int, str, Vector]], at: datetime) -> None:
        """Store vectors by chunk id; one whose chunk is gone, or has another content_hash, is dropped."""


class Index(Lookup, VectorIndex, Protocol):
    """Chunks, words and vectors of every tenant."""

    def load_files(self, tenant: str, files: Sequence[tuple[str, str]]) -> list[Content | None]:
        """Return live files by project and path, None for each that does not exist."""

    def lack_vectors(self, tenant: str, files: Sequence[tuple[str, str]], model: str) -> list[bool]:
        """Return for each file, given by project and path, whether it has a chunk without a vector of a model."""

    def load_indexed_chunks(self, tenant: str, project: str, path: str) -> list[IndexedChunk]:
        """Return the chunks of a path in the index, in order."""

    def put_words(self, tenant: str, files: Sequence[IndexedFile], tokenizer: str, at: datetime) -> list[bool]:
        """Index the chunks and words of these files, all in one transaction; False for each that has changed since.

        A chunk whose content_hash is in the index at that path keeps its id and its vectors; a new one takes over the
        vectors of a chunk with the same text, wherever the tenant has it. A file has changed since when it is no longer
        live at its version or, for chunks None, when it is live again.
        """

    def mark_served(self, tenant: str, chunk_ids: Sequence[int], at: datetime) -> None:
        """Store when chunks were last served."""

    def list_models(self, tenant: str) -> list[str]:
        """Return the models that a tenant has vectors of."""

    def delete_outdated_vectors(self, tenant: str, outdated: str, model: str, before: datetime, limit: int) -> int:
        """Delete up to `limit` vectors of an outdated model whose chunk got one of `model` before then; returns how many."""

    def list_tenants(self) -> list[str]:
        """Return every tenant that has chunks."""

    def run_maintenance(self) -> int:
        """Do background work that keeps searches fast and may take minutes; returns how many things were done."""

    def close(self) -> None:
        """Close every connection."""


class Embedder(Protocol):
    """Turns texts into vectors. `model` is the key that its vectors are stored under."""

    @property
    def model(self) -> str:
        """The name of the model, with everything else that its vectors depend on."""

    @property
    def needs_key(self) -> bool:
        """Whether each request needs the caller's own key."""

    def embed(self, texts: Sequence[str], key: Secret | None, check: Callable[[], None]) -> list[Vector]:
        """Return a vector of float32 and length one for each text; EmbedFault when that fails."""


class Reranker(Protocol):
    """Scores texts by how well they answer a query."""

    def rank(self, query: str, texts: Sequence[str], key: Secret | None, timeout_ms: int) -> list[float]:
        """Return a score for each text in order, larger is better; RerankFault on any failure."""
