"""BM25 in a store file: FTS5 finds and orders, and the best are scored once more with every term of the query.

Common terms have long lists. Where all lists together are long, only the rarest terms are looked up, as many as the
bound allows, and all terms still count in the score of what they found. A scope is a word of its own in the index.
"""

import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.adapters.sqlite.search.rows import listed, run, scope_word, within
from holdfast.search.bm25 import average_length, score, term_weights
from holdfast.search.model import Candidate, Scope, Statistics

POSTINGS_LOOKED_UP = 60_000
_MATCHES_EACH = 4
_LEAST_MATCHES = 120
_WIDER = 8


class _Match(NamedTuple):
    chunk_id: int
    tokens: str
    token_count: int


def matching(
    connection: sqlite3.Connection, tenant: str, scope: Scope, terms: Sequence[str], limit: int, statistics: Statistics
) -> list[Candidate]:
    """Return the best chunks of live files by the statistics given."""
    used = looked_up(terms, statistics)
    if not used:
        return []
    weight, average = term_weights(terms, statistics), average_length(statistics)
    scored = [
        Candidate(match.chunk_id, score(_counts(match, weight), match.token_count, weight, average))
        for match in _matches(connection, tenant, scope, used, limit)
    ]
    scored.sort(key=lambda candidate: (-candidate.score, candidate.chunk_id))
    return scored[:limit]


def looked_up(terms: Sequence[str], statistics: Statistics) -> list[str]:
    """Return the terms to look up, rarest first: all, or as many as the bound allows and one at least."""
    frequencies = statistics.document_frequencies
    total = 0
    used: list[str] = []
    for term in sorted({term for term in terms if frequencies.get(term)}, key=lambda term: frequencies[term]):
        total += frequencies[term]
        if used and total > POSTINGS_LOOKED_UP:
            break
        used.append(term)
    return used


def statistics_of(connection: sqlite3.Connection, tenant: str, terms: Sequence[str]) -> Statistics:
    """Return what a tenant's file holds in all, and of these terms."""
    row = run(connection, "totals", {"apikey_hash": tenant}).fetchone()
    chunks, tokens = row or (0, 0)
    counted = run(connection, "count_terms", {"terms": listed(sorted(set(terms)))}) if chunks else ()
    return Statistics(chunks, tokens, dict(counted))


def _matches(
    connection: sqlite3.Connection, tenant: str, scope: Scope, used: Sequence[str], limit: int
) -> list[_Match]:
    """Return more than are wanted, because the two scores differ a little; look further while too few are live."""
    wanted = max(_LEAST_MATCHES, limit * _MATCHES_EACH)
    query, most = _query(scope, used), wanted
    while True:
        found = run(connection, "match_words", {"query": query, "most": most}).fetchall()
        asked = {**within(tenant, scope), "ids": listed([row["chunk_id"] for row in found])}
        rows = run(connection, "live_words", asked).fetchall()
        if len(rows) >= limit or len(found) < most:
            return [_Match(row["chunk_id"], row["tokens"], row["token_count"]) for row in rows[:wanted]]
        most *= _WIDER


def _query(scope: Scope, used: Sequence[str]) -> str:
    words = " OR ".join(f'"{term}"' for term in used)
    word = scope_word(scope)
    return f"scope : {word} AND tokens : ({words})" if word else f"tokens : ({words})"


def _counts(match: _Match, weight: dict[str, float]) -> dict[str, int]:
    return Counter(word for word in match.tokens.split(" ") if word in weight)
