"""Pure: the values of search.

A file is split into **chunks**. A retriever returns **candidates**: chunk ids with a score. A **passage** is the text of a
candidate as its live file holds it, and a **hit** is a passage that is returned to the caller.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from holdfast.store.paths import PathRange

ALL_PROJECTS = "*"

Vector = Sequence[float]
"""An embedding; embedders make, and indexes take, an array of float32 of length one."""


class Scope(NamedTuple):
    """Where to search: one project, or all of the tenant's for None; and a span of paths."""

    project: str | None
    span: PathRange


class Content(NamedTuple):
    """The version and the bytes of a live file."""

    version: int
    data: bytes


class Chunk(NamedTuple):
    """A part of a file: its byte range, its text and the hash of that; `tokens` are the words that it is found by."""

    start: int
    end: int
    text: str
    content_hash: str
    tokens: tuple[str, ...] = ()


class IndexedChunk(NamedTuple):
    """A chunk in the index."""

    id: int
    position: int
    start: int
    end: int
    content_hash: str


class IndexedFile(NamedTuple):
    """The chunks of one version of a file: empty for an empty file, None for a deleted one."""

    project: str
    path: str
    version: int
    chunks: Sequence[Chunk] | None


class ChunkText(NamedTuple):
    """A chunk that has no vector yet."""

    id: int
    content_hash: str
    text: str


class Candidate(NamedTuple):
    """A chunk that may answer a query; scores of different retrievers cannot be compared."""

    chunk_id: int
    score: float


class Passage(NamedTuple):
    """The text of a chunk that is what its live file holds at that range."""

    chunk_id: int
    project: str
    path: str
    start: int
    end: int
    text: str
    file_size: int


class PendingFile(NamedTuple):
    """A live file whose words are not indexed yet."""

    project: str
    path: str
    version: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Statistics:
    """Totals of a tenant's index: chunks, tokens, and by term how many chunks have it."""

    chunk_count: int
    token_count: int
    document_frequencies: Mapping[str, int]


class WordMatches(NamedTuple):
    """Candidates found by words, best first, and the statistics that they were scored with."""

    candidates: list[Candidate]
    statistics: Statistics


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that answers a query, with its byte range and score."""

    project: str
    path: str
    start: int
    end: int
    text: str
    score: float
    is_full_file: bool


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """The limits that the settings give."""

    enabled: bool = True
    limit_default: int = 5
    limit_max: int = 20
    vector_candidates: int = 30
    bm25_candidates: int = 30
    rerank_timeout_ms: int = 6000
    semantic_weight: float = 0.5
    lexical_weight: float = 0.5

    def with_more_candidates(self, factor: int) -> "SearchLimits":
        """Return the same limits with `factor` times as many candidates."""
        return replace(
            self, vector_candidates=factor * self.vector_candidates, bm25_candidates=factor * self.bm25_candidates
        )


def no_matches_text(path_prefix: str) -> str:
    """Return the text for an answer without hits; it names a prefix that no path can have."""
    if not path_prefix or path_prefix.startswith("/"):
        return "No matches found."
    return f"No matches found: every stored path begins with '/', unlike the prefix {path_prefix!r:.80}."
