"""Packs the words of chunks into blocks of postings, and replaces blocks whose chunks are mostly deleted.

The words of a chunk are stored in a row of their own at first, which every search reads, until there are enough to pack.
"""

import json
from array import array
from collections.abc import Sequence
from sys import byteorder
from typing import Any

from holdfast.adapters.postgres.search.rows import run
from holdfast.adapters.postgres.store.store import Connection, lock_key

MAX_UNPACKED = 512
MAX_BLOCK_CHUNKS = 16_384
PACK_BATCH = 4096
_MAX_TERM_COUNT = 255
_MAX_LENGTH = 65_535
_LOCK_NAME = "\0words"


def needs_packing(connection: Connection, tenant: str) -> bool:
    """Return whether many chunks are unpacked, or more than half of a block is dead."""
    unpacked = run(connection, "many_unpacked", {"apikey_hash": tenant, "most": MAX_UNPACKED})
    mostly_dead = run(connection, "mostly_dead_block", {"apikey_hash": tenant})
    return unpacked.fetchone() is not None or mostly_dead.fetchone() is not None


def lock_blocks(connection: Connection, tenant: str) -> None:
    """Lock the blocks of a tenant until the transaction ends, to pack them or to mark chunks in them as dead.

    Without it two workers could deadlock, each waiting for a block that the other one has locked.
    """
    connection.execute("SELECT pg_advisory_xact_lock(%(key)s)", {"key": lock_key(tenant, _LOCK_NAME)})


def pack_blocks(connection: Connection, tenant: str) -> bool:
    """Unpack one mostly dead block, then pack all unpacked chunks; True when there was one, and may be more."""
    lock_blocks(connection, tenant)
    mostly_dead = run(connection, "mostly_dead_block", {"apikey_hash": tenant}).fetchone()
    if mostly_dead is not None:
        parameters = {"apikey_hash": tenant, "block": mostly_dead["block"]}
        for statement in ("unpack_chunks", "delete_words", "delete_block"):
            run(connection, statement, parameters)
    while rows := run(connection, "unpacked_chunks", {"apikey_hash": tenant, "limit": PACK_BATCH}).fetchall():
        _pack_rows(connection, tenant, rows)
    return mostly_dead is not None


def _pack_rows(connection: Connection, tenant: str, rows: Sequence[dict[str, Any]]) -> None:
    last = run(connection, "last_block", {"apikey_hash": tenant}).fetchone()
    if last is not None and last["chunks"] + len(rows) > MAX_BLOCK_CHUNKS:
        last = {"block": last["block"] + 1, "chunks": 0, "names": []}
    block, first_slot, names = (last["block"], last["chunks"], list(last["names"])) if last else (0, 0, [])
    codes = {name: code for code, name in enumerate(names)}
    projects = [codes.setdefault(row["project"], len(codes)) for row in rows]
    added = {
        "apikey_hash": tenant,
        "block": block,
        "chunks": len(rows),
        "tokens": sum(row["token_count"] for row in rows),
        "names": json.dumps(list(codes)),
        "lengths": pack_uint16([min(row["token_count"], _MAX_LENGTH) for row in rows]),
        "projects": pack_uint16(projects),
    }
    run(connection, "extend_block", added)
    run(connection, "extend_words", {"apikey_hash": tenant, "block": block, **_build_postings(rows, first_slot)})
    ids = [row["chunk_id"] for row in rows]
    slots = list(range(first_slot, first_slot + len(rows)))
    run(connection, "assign_slots", {"apikey_hash": tenant, "block": block, "ids": ids, "slots": slots})


def _build_postings(rows: Sequence[dict[str, Any]], first_slot: int) -> dict[str, Any]:
    """Return for each term the slots that have it and how often, as bytes; terms are sorted, so that nobody deadlocks."""
    slots: dict[str, list[int]] = {}
    counts: dict[str, list[int]] = {}
    for slot, row in enumerate(rows, start=first_slot):
        for term, count in row["tokens"].items():
            slots.setdefault(term, []).append(slot)
            counts.setdefault(term, []).append(min(count, _MAX_TERM_COUNT))
    terms = sorted(slots)
    return {
        "terms": terms,
        "chunks": [len(slots[term]) for term in terms],
        "slots": [pack_uint16(slots[term]) for term in terms],
        "counts": [bytes(counts[term]) for term in terms],
    }


def pack_uint16(values: Sequence[int]) -> bytes:
    """Return numbers as two bytes each, little-endian."""
    packed = array("H", values)
    if byteorder == "big":
        packed.byteswap()
    return packed.tobytes()
