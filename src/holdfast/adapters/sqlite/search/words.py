"""BM25 in a store file: FTS5 finds and orders chunks, and the best are scored again with every term of the query.

Common terms have long postings. Where all postings together are too long, only the rarest terms are matched, as many as
the limit allows; all terms still count in the score of the chunks that they match. A scope is a word of its own in FTS5.
"""

import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.adapters.search_parameters import json_list, scope_parameters
from holdfast.adapters.sqlite.search.rows import run, scope_word
from holdfast.search.model import Candidate, Scope, Statistics
from holdfast.search.scores import average_length, score, term_weights

MAX_POSTINGS = 60_000
_MATCHES_PER_HIT = 4
_MIN_MATCHES = 120
_GROWTH_FACTOR = 8


class _Match(NamedTuple):
    chunk_id: int
    tokens: str
    token_count: int


def find_by_words(
    connection: sqlite3.Connection, tenant: str, scope: Scope, terms: Sequence[str], limit: int, statistics: Statistics
) -> list[Candidate]:
    """Return the best chunks of live files, scored with the given statistics."""
    matched_terms = choose_terms(terms, statistics)
    if not matched_terms:
        return []
    weights, average = term_weights(terms, statistics), average_length(statistics)
    candidates = []
    for match in _find_matches(connection, tenant, scope, matched_terms, limit):
        term_counts = Counter(token for token in match.tokens.split(" ") if token in weights)
        candidates.append(Candidate(match.chunk_id, score(term_counts, match.token_count, weights, average)))
    candidates.sort(key=lambda candidate: (-candidate.score, candidate.chunk_id))
    return candidates[:limit]


def choose_terms(terms: Sequence[str], statistics: Statistics) -> list[str]:
    """Return the terms to match, rarest first: all, or as many as MAX_POSTINGS allows and at least one."""
    frequencies = statistics.document_frequencies
    postings = 0
    rarest: list[str] = []
    for term in sorted({term for term in terms if frequencies.get(term)}, key=lambda term: frequencies[term]):
        postings += frequencies[term]
        if rarest and postings > MAX_POSTINGS:
            break
        rarest.append(term)
    return rarest


def load_statistics(connection: sqlite3.Connection, tenant: str, terms: Sequence[str]) -> Statistics:
    """Return the totals of a tenant's index, and the document frequencies of these terms."""
    row = run(connection, "totals", {"apikey_hash": tenant}).fetchone()
    chunks, tokens = row or (0, 0)
    frequencies = run(connection, "count_terms", {"terms": json_list(sorted(set(terms)))}) if chunks else ()
    return Statistics(chunks, tokens, dict(frequencies))


def _find_matches(
    connection: sqlite3.Connection, tenant: str, scope: Scope, terms: Sequence[str], limit: int
) -> list[_Match]:
    """Return more matches than asked for, because FTS5 scores a little differently; more again while too few are live."""
    needed = max(_MIN_MATCHES, limit * _MATCHES_PER_HIT)
    alternatives = " OR ".join(f'"{term}"' for term in terms)
    query = f"tokens : ({alternatives})"
    word = scope_word(scope)
    if word is not None:
        query = f"scope : {word} AND {query}"
    max_matches = needed
    while True:
        ids = [row["chunk_id"] for row in run(connection, "match_words", {"query": query, "most": max_matches})]
        parameters = {**scope_parameters(tenant, scope), "ids": json_list(ids)}
        rows = run(connection, "live_words", parameters).fetchall()
        if len(rows) >= limit or len(ids) < max_matches:
            return [_Match(row["chunk_id"], row["tokens"], row["token_count"]) for row in rows[:needed]]
        max_matches *= _GROWTH_FACTOR
