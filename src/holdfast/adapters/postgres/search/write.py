"""Writes the chunks and words of one file into PostgreSQL, within a transaction."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.adapters.postgres.search.blocks import lock_blocks
from holdfast.adapters.postgres.search.rows import run
from holdfast.adapters.postgres.store.store import Connection
from holdfast.adapters.search_parameters import indexed_file_parameters, json_list
from holdfast.search.chunk import diff_chunks
from holdfast.search.model import Chunk, IndexedChunk, IndexedFile

NUL_REPLACEMENT = "\ufffd"
"""Stands in a stored chunk for the character NUL, which PostgreSQL's text cannot hold."""

Stamp = Mapping[str, Any]


def write_file(connection: Connection, file: IndexedFile, stamp: Stamp) -> bool:
    """Index a file as it is at its version, or remove it; False when it has changed since.

    The state is claimed first: another writer of the same path waits for it, and the later version wins. The first three
    statements are sent together, in this order, and each sees what was committed before it ran.
    """
    claimed = run(
        connection, "claim_state", {**indexed_file_parameters(file, stamp), "version": file.version, "at": stamp["at"]}
    )
    live = run(connection, "live_version", indexed_file_parameters(file, stamp))
    indexed_rows = run(connection, "indexed_chunks", indexed_file_parameters(file, stamp))
    if claimed.fetchone() is None or _has_changed_since(file, live.fetchone()):
        return False
    indexed = [IndexedChunk(*row.values()) for row in indexed_rows.fetchall()]
    diff = diff_chunks(indexed, file.chunks or ())
    _move(connection, file, stamp, indexed, diff.unchanged)
    ids = _add(connection, file, stamp, diff.added)
    if ids:
        run(
            connection,
            "copy_vectors",
            {**indexed_file_parameters(file, stamp), "ids": json_list(ids), "at": stamp["at"]},
        )
    if diff.removed_ids:
        parameters = {**indexed_file_parameters(file, stamp), "ids": json_list(diff.removed_ids)}
        lock_blocks(connection, stamp["apikey_hash"])
        run(connection, "count_dead_slots", parameters)
        run(connection, "delete_chunks", parameters)
    run(
        connection,
        "restore_positions" if file.chunks is not None else "delete_state",
        indexed_file_parameters(file, stamp),
    )
    return True


def _has_changed_since(file: IndexedFile, row: Mapping[str, Any] | None) -> bool:
    if file.chunks is None:
        return row is not None
    return row is None or row["version"] != file.version


def _move(
    connection: Connection,
    file: IndexedFile,
    stamp: Stamp,
    indexed: Sequence[IndexedChunk],
    unchanged: Sequence[tuple[int, int, Chunk]],
) -> None:
    before = {old.id: (old.position, old.start) for old in indexed}
    moved = [
        {"id": chunk_id, "position": position, "low": chunk.start, "high": chunk.end}
        for chunk_id, position, chunk in unchanged
        if before[chunk_id] != (position, chunk.start)
    ]
    if moved:
        run(
            connection,
            "move_chunks",
            {**indexed_file_parameters(file, stamp), "chunks": json.dumps(moved), "at": stamp["at"]},
        )


def _add(connection: Connection, file: IndexedFile, stamp: Stamp, added: Sequence[tuple[int, Chunk]]) -> list[int]:
    """Insert chunks and return their ids; positions are negative until the removed chunks have left theirs."""
    if not added:
        return []
    rows = [
        {
            "position": -1 - position,
            "low": chunk.start,
            "high": chunk.end,
            "text": chunk.text.replace("\0", NUL_REPLACEMENT),
            "content_hash": chunk.content_hash,
        }
        for position, chunk in added
    ]
    shared = {**indexed_file_parameters(file, stamp), "version": file.version, "at": stamp["at"]}
    inserted = run(connection, "insert_chunks", {**shared, "chunks": json.dumps(rows)}).fetchall()
    ids = {-1 - row["chunk_index"]: row["id"] for row in inserted}
    words = [
        {"id": ids[position], "tokens": Counter(chunk.tokens), "token_count": len(chunk.tokens)}
        for position, chunk in added
    ]
    labels = {**indexed_file_parameters(file, stamp), "tokenizer": stamp["tokenizer"], "at": stamp["at"]}
    run(connection, "insert_words", {**labels, "words": json.dumps(words)})
    return sorted(ids.values())
