"""Faults of a search that the races must bring to light; each is put in by replacing a statement or a method."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from holdfast.adapters.postgres.search import rows as postgres_rows
from holdfast.adapters.sqlite.search import rows as sqlite_rows
from holdfast.search.model import Passage, PendingFile, Scope
from holdfast.search.ports import Index

_STATEMENTS = (sqlite_rows.STATEMENTS, postgres_rows.STATEMENTS)
_RIGHT = tuple(dict(statements) for statements in _STATEMENTS)
_LIVE = re.compile(r"AND NOT f\.deleted\s+AND f\.version = s\.version")


def _finds_what_is_deleted(_index: Index) -> None:
    """A chunk counts as long as its path has a row, live or not, at whatever version."""
    _replaced("")


def _trusts_the_index(_index: Index) -> None:
    """A chunk counts as long as its path is live: the version that the index holds is not compared."""
    _replaced("AND NOT f.deleted")


def _remembers_passages(index: Index) -> None:
    """The text of a chunk is kept by its number once it was read."""
    real, passages_read = index.load_passages, dict[int, Passage]()

    def passages(tenant: str, scope: Scope, chunk_ids: Sequence[int]) -> list[Passage]:
        missing = [number for number in chunk_ids if number not in passages_read]
        passages_read.update({passage.chunk_id: passage for passage in real(tenant, scope, missing)})
        return [passages_read[number] for number in chunk_ids if number in passages_read]

    index.load_passages = passages  # type: ignore[method-assign]


def _trusts_pending_files(index: Index) -> None:
    """A pending file is handed out as it was read, whatever became of it while the index was asked."""
    real, read = index.load_pending_files, dict[tuple[str, str], int]()

    def pending(tenant: str, scope: Scope, limit: int, max_bytes: int) -> list[PendingFile]:
        files = real(tenant, scope, limit, max_bytes)
        read.update({(file.project, file.path): file.version for file in files})
        return files

    def versions(_tenant: str, places: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
        return {place: read[place] for place in places}

    index.load_pending_files = pending  # type: ignore[method-assign]
    index.load_live_versions = versions  # type: ignore[method-assign, assignment]


MUTANTS: dict[str, Callable[[Index], None]] = {
    "finds what is deleted": _finds_what_is_deleted,
    "trusts the index": _trusts_the_index,
    "remembers passages": _remembers_passages,
    "trusts pending files": _trusts_pending_files,
}


@contextmanager
def restored() -> Iterator[None]:
    """Undo what was done to statements during the block."""
    try:
        yield
    finally:
        for statements, right in zip(_STATEMENTS, _RIGHT, strict=True):
            statements.update(right)


def _replaced(guard: str) -> None:
    for statements, right in zip(_STATEMENTS, _RIGHT, strict=True):
        for name in right.keys() & {"live_chunks", "live_slots", "live_words"}:
            statements[name], count = _LIVE.subn(guard, right[name])
            assert count == 1, name
