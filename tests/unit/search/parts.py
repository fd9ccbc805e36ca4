"""An index in memory that fails on demand, and rerankers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from holdfast.search.model import Candidate, Passage, PendingFile, Scope, Statistics, Vector, WordMatches
from holdfast.search.ports import IndexFault, RerankFault
from holdfast.secret import Secret


@dataclass
class FakeIndex:
    """Answers what it was given; `down` names the methods that fail."""

    lexical: list[Candidate] = field(default_factory=list)
    semantic: list[Candidate] = field(default_factory=list)
    texts: dict[int, str] = field(default_factory=dict)
    waiting: list[PendingFile] = field(default_factory=list)
    down: set[str] = field(default_factory=set)
    gone_once: set[int] = field(default_factory=set)
    touched: list[int] = field(default_factory=list)
    asked: list[tuple[str, Any]] = field(default_factory=list)

    def find_by_words(self, tenant: str, scope: Scope, terms: Sequence[str], limit: int) -> WordMatches:
        self._answer("find_by_words", limit)
        return WordMatches(self.lexical[:limit], Statistics(10, 100, dict.fromkeys(terms, 1)))

    def find_nearest(self, tenant: str, scope: Scope, model: str, vector: Vector, limit: int) -> list[Candidate]:
        self._answer("find_nearest", limit)
        return self.semantic[:limit]

    def load_pending_files(self, tenant: str, scope: Scope, limit: int, max_bytes: int) -> list[PendingFile]:
        self._answer("load_pending_files", max_bytes)
        return self.waiting

    def load_passages(self, tenant: str, scope: Scope, chunk_ids: Sequence[int]) -> list[Passage]:
        self._answer("load_passages", list(chunk_ids))
        gone, self.gone_once = self.gone_once, set()
        return [
            Passage(number, "p", f"/{number}", 0, 4, self.texts.get(number, "text"), 4)
            for number in chunk_ids
            if number not in gone
        ]

    def load_live_versions(self, tenant: str, places: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
        self._answer("load_live_versions", places)
        return {(file.project, file.path): file.version for file in self.waiting}

    def mark_served(self, tenant: str, chunk_ids: Sequence[int], at: datetime) -> None:
        self._answer("mark_served", list(chunk_ids))
        self.touched += chunk_ids

    def _answer(self, name: str, asked: Any) -> None:
        if name in self.down:
            raise IndexFault(f"{name} is down")
        self.asked.append((name, asked))


@dataclass
class FakeReranker:
    """Scores texts by a table; fails, or answers too little, on demand."""

    scores: dict[str, float] = field(default_factory=dict)
    is_down: bool = False
    is_short: bool = False
    seen: list[tuple[str, list[str], Secret | None, int]] = field(default_factory=list)

    def rank(self, query: str, texts: Sequence[str], key: Secret | None, timeout_ms: int) -> list[float]:
        self.seen.append((query, list(texts), key, timeout_ms))
        if self.is_down:
            raise RerankFault("too slow")
        return [self.scores.get(text, 0.0) for text in texts][: -1 if self.is_short else None]
