"""Pure: what search knows: chunks, scopes, candidates, passages and hits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from holdfast.store.paths import Span

ALL_PROJECTS = "*"

Vector = Sequence[float]
"""An embedding; what embedders make and indexes take is an array of float32, of length one."""


class Scope(NamedTuple):
    """Where to look: one project, or all of the tenant's for None; and a span of paths."""

    project: str | None
    span: Span


class Content(NamedTuple):
    """A live file: the version that made it what it is, and its bytes."""

    version: int
    data: bytes


class Chunk(NamedTuple):
    """A piece of a file: its byte range, its text and the hash of that; `tokens` are its words as they are looked up."""

    start: int
    end: int
    text: str
    content_hash: str
    tokens: tuple[str, ...] = ()


class KnownChunk(NamedTuple):
    """A piece that the index holds."""

    id: int
    place: int
    start: int
    end: int
    content_hash: str


class IndexedFile(NamedTuple):
    """The pieces of one version of a file; none at all when the file is empty, None when it is gone."""

    project: str
    path: str
    version: int
    chunks: Sequence[Chunk] | None


class ChunkText(NamedTuple):
    """A piece that wants a vector."""

    id: int
    content_hash: str
    text: str


class Candidate(NamedTuple):
    """A piece that may answer a query; scores of different retrievers cannot be compared."""

    chunk_id: int
    score: float


class Passage(NamedTuple):
    """A piece of a live file as the index holds it, which is as the file is."""

    chunk_id: int
    project: str
    path: str
    start: int
    end: int
    text: str
    file_size: int


class PendingFile(NamedTuple):
    """A live file whose words are not in the index yet."""

    project: str
    path: str
    version: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a tenant's index holds in all: pieces, tokens, and how many pieces hold a term."""

    chunks: int
    tokens: int
    holding: Mapping[str, int]


class Found(NamedTuple):
    """Candidates by words, best first, and the statistics that scored them."""

    candidates: list[Candidate]
    statistics: Statistics


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that answers a query, with its byte range."""

    project: str
    path: str
    start: int
    end: int
    text: str
    score: float
    is_full_file: bool


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """The numbers that settings change."""

    enabled: bool = True
    limit_default: int = 5
    limit_max: int = 20
    vector_candidates: int = 30
    bm25_candidates: int = 30
    rerank_timeout_ms: int = 6000
    semantic_weight: float = 0.5
    lexical_weight: float = 0.5

    def widened(self, times: int) -> "SearchLimits":
        """Return the same with so many times the candidates."""
        return replace(
            self, vector_candidates=times * self.vector_candidates, bm25_candidates=times * self.bm25_candidates
        )


def nothing_found(path_prefix: str) -> str:
    """Return what is said when there are no hits; a prefix that no path can have is named."""
    if not path_prefix or path_prefix.startswith("/"):
        return "No matches found."
    return f"No matches found: every stored path begins with '/', unlike the prefix {path_prefix!r:.80}."
