"""BM25 in PostgreSQL: the postings of the query's terms are fetched by block and scored here, every one of them."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.adapters.postgres.search.rows import listed, run, within
from holdfast.adapters.postgres.store.rows import Connection
from holdfast.search.bm25 import K1, B, average_length, score, term_weights
from holdfast.search.model import Candidate, Scope, Statistics, WordMatches

_MATCHES_EACH = 2
_WIDER = 8
_IN_SCOPE_AT_MOST = 20_000

Rows = Sequence[dict[str, Any]]


class _Slots(NamedTuple):
    """Scored slots, best first."""

    blocks: NDArray[np.int64]
    slots: NDArray[np.int64]
    scores: NDArray[np.float32]


def matching(connection: Connection, tenant: str, scope: Scope, terms: Sequence[str], limit: int) -> WordMatches:
    """Return the best chunks of live files, and the statistics that scored them."""
    asked = {"apikey_hash": tenant, "terms": listed(sorted(set(terms)))}
    blocks, postings, loose = (
        cursor.fetchall()
        for cursor in [
            run(connection, "blocks", {"apikey_hash": tenant}),
            run(connection, "look_up", asked),
            run(connection, "loose_words", asked),
        ]
    )
    statistics = _statistics(blocks, postings, loose)
    weight, average = term_weights(terms, statistics), average_length(statistics)
    among = _few_in_scope(connection, tenant, scope) if postings else None
    packed = _scored(blocks, postings, scope, weight, average, among)
    found = _live(connection, tenant, scope, packed, limit)
    found += _loose(connection, tenant, scope, loose, weight, average)
    found.sort(key=lambda candidate: (-candidate.score, candidate.chunk_id))
    return WordMatches(found[:limit], statistics)


def _statistics(blocks: Rows, postings: Rows, loose: Rows) -> Statistics:
    holding: dict[str, int] = {}
    for row in postings:
        holding[row["term"]] = holding.get(row["term"], 0) + row["chunks"]
    for row in loose:
        for term in row["counts"] or ():
            holding[term] = holding.get(term, 0) + 1
    chunks = sum(row["chunks"] for row in blocks) + len(loose)
    tokens = sum(row["tokens"] for row in blocks) + sum(row["token_count"] for row in loose)
    return Statistics(chunks, tokens, holding)


def _scored(
    blocks: Rows,
    postings: Rows,
    scope: Scope,
    weight: dict[str, float],
    average: float,
    among: dict[int, list[int]] | None,
) -> _Slots:
    by_block: dict[int, list[dict[str, Any]]] = {}
    for row in postings:
        by_block.setdefault(row["block"], []).append(row)
    parts = []
    for block in blocks:
        scores = _block_scores(block, by_block.get(block["block"], ()), weight, average)
        _keep_project(scores, block, scope.project)
        if among is not None:
            _keep_slots(scores, among.get(block["block"], []))
        slots = np.flatnonzero(scores)
        parts.append((np.full(len(slots), block["block"], np.int64), slots, scores[slots]))
    if not parts:
        return _Slots(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
    numbers, slots, scores = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _Slots(numbers, slots, scores)


def _block_scores(
    block: dict[str, Any], postings: Iterable[dict[str, Any]], weight: dict[str, float], average: float
) -> NDArray[np.float32]:
    lengths = np.frombuffer(block["lengths"], "<u2").astype(np.float32)
    room = (K1 * (1 - B + B * lengths / average) if average > 0 else np.full(len(lengths), K1)).astype(np.float32)
    scores = np.zeros(len(lengths), np.float32)
    for row in postings:
        slots = np.frombuffer(row["slots"], "<u2")
        counts = np.frombuffer(row["counts"], np.uint8).astype(np.float32)
        scores[slots] += weight[row["term"]] * (K1 + 1) * counts / (counts + room[slots])
    return scores


def _keep_project(scores: NDArray[np.float32], block: dict[str, Any], project: str | None) -> None:
    if project is None:
        return
    names = block["names"]
    code = names.index(project) if project in names else -1
    scores[np.frombuffer(block["projects"], "<u2") != code] = 0


def _keep_slots(scores: NDArray[np.float32], slots: Sequence[int]) -> None:
    is_out = np.ones(len(scores), bool)
    is_out[np.asarray(slots, np.int64)] = False
    scores[is_out] = 0


def _few_in_scope(connection: Connection, tenant: str, scope: Scope) -> dict[int, list[int]] | None:
    """Return the slots of a scope by block when they are few; None when they are many, or all of a project."""
    if scope.project is None or scope.span.low in ("", "/"):
        return None
    rows = run(connection, "scope_slots", {**within(tenant, scope), "limit": _IN_SCOPE_AT_MOST + 1}).fetchall()
    if len(rows) > _IN_SCOPE_AT_MOST:
        return None
    among: dict[int, list[int]] = {}
    for row in rows:
        among.setdefault(row["block"], []).append(row["slot"])
    return among


def _live(connection: Connection, tenant: str, scope: Scope, packed: _Slots, limit: int) -> list[Candidate]:
    """Return the best of the packed chunks whose files are live; looks further while too few of them are."""
    most = limit * _MATCHES_EACH
    while True:
        best = (
            np.argpartition(-packed.scores, most)[:most] if most < len(packed.scores) else np.arange(len(packed.scores))
        )
        scores = {(int(packed.blocks[at]), int(packed.slots[at])): float(packed.scores[at]) for at in best}
        asked = {**within(tenant, scope), "slots": listed(list(scores))}
        rows = run(connection, "live_slots", asked).fetchall() if scores else []
        if len(rows) >= limit or len(best) == len(packed.scores):
            return [Candidate(row["chunk_id"], scores[row["block"], row["slot"]]) for row in rows]
        most *= _WIDER


def _loose(
    connection: Connection, tenant: str, scope: Scope, loose: Rows, weight: dict[str, float], average: float
) -> list[Candidate]:
    held = {
        row["chunk_id"]: score(row["counts"], row["token_count"], weight, average)
        for row in loose
        if row["counts"] and scope.project in (None, row["project"])
    }
    if not held:
        return []
    rows = run(connection, "live_chunks", {**within(tenant, scope), "ids": listed(list(held))}).fetchall()
    return [Candidate(row["id"], held[row["id"]]) for row in rows]
