"""Packs the words of loose chunks into blocks of postings, and blocks that are mostly dead into new ones.

A chunk's words wait beside it, where a search reads them one by one, until there are enough to make packing worth while.
"""

import json
from array import array
from collections.abc import Sequence
from sys import byteorder
from typing import Any

from holdfast.adapters.postgres.search.rows import run
from holdfast.adapters.postgres.store.rows import Connection
from holdfast.adapters.postgres.store.store import lock_key

LOOSE_AT_MOST = 512
CHUNKS_IN_A_BLOCK = 16_384
_PACKED_AT_ONCE = 4096
_MOST_COUNTED = 255
_MOST_LENGTH = 65_535
_LOCK_NAME = "\0words"


def is_due(connection: Connection, tenant: str) -> bool:
    """Return whether there are many loose chunks, or a block of which more than half is dead."""
    loose = run(connection, "many_loose", {"apikey_hash": tenant, "most": LOOSE_AT_MOST})
    worn = run(connection, "worn_block", {"apikey_hash": tenant})
    return loose.fetchone() is not None or worn.fetchone() is not None


def hold(connection: Connection, tenant: str) -> None:
    """Be the only one, until the transaction ends, who packs a tenant's blocks or lets chunks in them die.

    Without it two workers could each wait for a block that the other one has.
    """
    connection.execute("SELECT pg_advisory_xact_lock(%(key)s)", {"key": lock_key(tenant, _LOCK_NAME)})


def pack(connection: Connection, tenant: str) -> bool:
    """Take a worn block apart and put all loose chunks into blocks; True when there was one, and may be more."""
    hold(connection, tenant)
    worn = run(connection, "worn_block", {"apikey_hash": tenant}).fetchone()
    if worn is not None:
        asked = {"apikey_hash": tenant, "block": worn["block"]}
        for statement in ("loosen_chunks", "delete_words", "delete_block"):
            run(connection, statement, asked)
    while rows := run(connection, "loose_chunks", {"apikey_hash": tenant, "limit": _PACKED_AT_ONCE}).fetchall():
        _packed(connection, tenant, rows)
    return worn is not None


def _packed(connection: Connection, tenant: str, rows: Sequence[dict[str, Any]]) -> None:
    last = run(connection, "last_block", {"apikey_hash": tenant}).fetchone()
    if last is not None and last["chunks"] + len(rows) > CHUNKS_IN_A_BLOCK:
        last = {"block": last["block"] + 1, "chunks": 0, "names": []}
    block, first, names = (last["block"], last["chunks"], list(last["names"])) if last else (0, 0, [])
    codes = {name: code for code, name in enumerate(names)}
    projects = [codes.setdefault(row["project"], len(codes)) for row in rows]
    extent = {
        "apikey_hash": tenant,
        "block": block,
        "chunks": len(rows),
        "tokens": sum(row["token_count"] for row in rows),
        "names": json.dumps(list(codes)),
        "lengths": two_bytes([min(row["token_count"], _MOST_LENGTH) for row in rows]),
        "projects": two_bytes(projects),
    }
    run(connection, "extend_block", extent)
    run(connection, "extend_words", {"apikey_hash": tenant, "block": block, **_postings(rows, first)})
    ids = [row["chunk_id"] for row in rows]
    slots = list(range(first, first + len(rows)))
    run(connection, "give_slots", {"apikey_hash": tenant, "block": block, "ids": ids, "slots": slots})


def _postings(rows: Sequence[dict[str, Any]], first: int) -> dict[str, Any]:
    """Return for each term the slots that hold it and how often, as bytes; terms in order, so that nobody deadlocks."""
    slots: dict[str, list[int]] = {}
    counts: dict[str, list[int]] = {}
    for slot, row in enumerate(rows, start=first):
        for term, count in row["tokens"].items():
            slots.setdefault(term, []).append(slot)
            counts.setdefault(term, []).append(min(count, _MOST_COUNTED))
    terms = sorted(slots)
    return {
        "terms": terms,
        "chunks": [len(slots[term]) for term in terms],
        "slots": [two_bytes(slots[term]) for term in terms],
        "counts": [bytes(counts[term]) for term in terms],
    }


def two_bytes(values: Sequence[int]) -> bytes:
    """Return numbers as two bytes each, the lesser first."""
    packed = array("H", values)
    if byteorder == "big":
        packed.byteswap()
    return packed.tobytes()
