"""BM25 in PostgreSQL: fetches the postings of the query's terms by block, and scores all of them here with numpy."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.adapters.postgres.search.rows import run
from holdfast.adapters.postgres.store.store import Connection
from holdfast.adapters.search_parameters import json_list, scope_parameters
from holdfast.search.model import Candidate, Scope, Statistics, WordMatches
from holdfast.search.scores import K1, B, average_length, score, term_weights

_MATCHES_PER_HIT = 2
_GROWTH_FACTOR = 8
_MAX_SCOPE_SLOTS = 20_000

Rows = Sequence[dict[str, Any]]


class _ScoredSlots(NamedTuple):
    """Slots with a score above 0, in the order of blocks and slots."""

    blocks: NDArray[np.int64]
    slots: NDArray[np.int64]
    scores: NDArray[np.float32]


def find_by_words(connection: Connection, tenant: str, scope: Scope, terms: Sequence[str], limit: int) -> WordMatches:
    """Return the best chunks of live files, and the statistics that they were scored with."""
    parameters = {"apikey_hash": tenant, "terms": json_list(sorted(set(terms)))}
    blocks, postings, unpacked = (
        cursor.fetchall()
        for cursor in [
            run(connection, "blocks", {"apikey_hash": tenant}),
            run(connection, "postings", parameters),
            run(connection, "unpacked_words", parameters),
        ]
    )
    statistics = _build_statistics(blocks, postings, unpacked)
    weights, average = term_weights(terms, statistics), average_length(statistics)
    scope_slots = _load_scope_slots(connection, tenant, scope) if postings else None
    packed = _score_blocks(blocks, postings, scope, weights, average, scope_slots)
    candidates = _find_live(connection, tenant, scope, packed, limit)
    candidates += _score_unpacked(connection, tenant, scope, unpacked, weights, average)
    candidates.sort(key=lambda candidate: (-candidate.score, candidate.chunk_id))
    return WordMatches(candidates[:limit], statistics)


def _build_statistics(blocks: Rows, postings: Rows, unpacked: Rows) -> Statistics:
    frequencies: dict[str, int] = {}
    for row in postings:
        frequencies[row["term"]] = frequencies.get(row["term"], 0) + row["chunks"]
    for row in unpacked:
        for term in row["counts"] or ():
            frequencies[term] = frequencies.get(term, 0) + 1
    chunk_count = sum(row["chunks"] for row in blocks) + len(unpacked)
    token_count = sum(row["tokens"] for row in blocks) + sum(row["token_count"] for row in unpacked)
    return Statistics(chunk_count, token_count, frequencies)


def _score_blocks(
    blocks: Rows,
    postings: Rows,
    scope: Scope,
    weights: dict[str, float],
    average: float,
    scope_slots: dict[int, list[int]] | None,
) -> _ScoredSlots:
    by_block: dict[int, list[dict[str, Any]]] = {}
    for row in postings:
        by_block.setdefault(row["block"], []).append(row)
    parts = []
    for block in blocks:
        scores = _block_scores(block, by_block.get(block["block"], ()), weights, average)
        if scope.project is not None:
            names = block["names"]
            code = names.index(scope.project) if scope.project in names else -1
            scores[np.frombuffer(block["projects"], "<u2") != code] = 0
        if scope_slots is not None:
            is_outside = np.ones(len(scores), bool)
            is_outside[np.asarray(scope_slots.get(block["block"], []), np.int64)] = False
            scores[is_outside] = 0
        slots = np.flatnonzero(scores)
        parts.append((np.full(len(slots), block["block"], np.int64), slots, scores[slots]))
    if not parts:
        return _ScoredSlots(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
    block_numbers, slots, scores = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _ScoredSlots(block_numbers, slots, scores)


def _block_scores(
    block: dict[str, Any], postings: Iterable[dict[str, Any]], weights: dict[str, float], average: float
) -> NDArray[np.float32]:
    lengths = np.frombuffer(block["lengths"], "<u2").astype(np.float32)
    saturation = (K1 * (1 - B + B * lengths / average) if average > 0 else np.full(len(lengths), K1)).astype(np.float32)
    scores = np.zeros(len(lengths), np.float32)
    for row in postings:
        slots = np.frombuffer(row["slots"], "<u2")
        counts = np.frombuffer(row["counts"], np.uint8).astype(np.float32)
        scores[slots] += weights[row["term"]] * (K1 + 1) * counts / (counts + saturation[slots])
    return scores


def _load_scope_slots(connection: Connection, tenant: str, scope: Scope) -> dict[int, list[int]] | None:
    """Return the slots of a scope by block; None when they are too many, or all of a project."""
    if scope.project is None or scope.span.low in ("", "/"):
        return None
    rows = run(connection, "scope_slots", {**scope_parameters(tenant, scope), "limit": _MAX_SCOPE_SLOTS + 1}).fetchall()
    if len(rows) > _MAX_SCOPE_SLOTS:
        return None
    slots: dict[int, list[int]] = {}
    for row in rows:
        slots.setdefault(row["block"], []).append(row["slot"])
    return slots


def _find_live(connection: Connection, tenant: str, scope: Scope, packed: _ScoredSlots, limit: int) -> list[Candidate]:
    """Return the best packed chunks whose files are live; takes more of them while too few are live."""
    count = limit * _MATCHES_PER_HIT
    while True:
        total = len(packed.scores)
        best = np.argpartition(-packed.scores, count)[:count] if count < total else np.arange(total)
        scores = {(int(packed.blocks[i]), int(packed.slots[i])): float(packed.scores[i]) for i in best}
        parameters = {**scope_parameters(tenant, scope), "slots": json_list(list(scores))}
        rows = run(connection, "live_slots", parameters).fetchall() if scores else []
        if len(rows) >= limit or len(best) == total:
            return [Candidate(row["chunk_id"], scores[row["block"], row["slot"]]) for row in rows]
        count *= _GROWTH_FACTOR


def _score_unpacked(
    connection: Connection, tenant: str, scope: Scope, unpacked: Rows, weights: dict[str, float], average: float
) -> list[Candidate]:
    scores = {
        row["chunk_id"]: score(row["counts"], row["token_count"], weights, average)
        for row in unpacked
        if row["counts"] and scope.project in (None, row["project"])
    }
    if not scores:
        return []
    rows = run(
        connection, "live_chunks", {**scope_parameters(tenant, scope), "ids": json_list(list(scores))}
    ).fetchall()
    return [Candidate(row["id"], scores[row["id"]]) for row in rows]
