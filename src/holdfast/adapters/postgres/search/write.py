"""Writes one file's chunks and words into PostgreSQL, inside a transaction."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.adapters.postgres.search.blocks import hold
from holdfast.adapters.postgres.search.rows import listed, run
from holdfast.adapters.postgres.store.rows import Connection
from holdfast.search.chunk import diff_chunks
from holdfast.search.model import Chunk, IndexedChunk, IndexedFile

Stamp = Mapping[str, Any]


def write(connection: Connection, file: IndexedFile, stamp: Stamp) -> bool:
    """Make the index hold a file as it is at its version, or no more; False when it was overtaken.

    The state is taken first: whoever indexes the same path waits for it, and the later version wins. What is asked goes
    out together, in this order, and each statement sees what was committed before it ran.
    """
    taken = run(connection, "take_state", {**_place(file, stamp), "version": file.version, "at": stamp["at"]})
    live = run(connection, "live_version", _place(file, stamp))
    held = run(connection, "known_chunks", _place(file, stamp))
    if taken.fetchone() is None or _is_overtaken(file, live.fetchone()):
        return False
    known = [IndexedChunk(*row.values()) for row in held.fetchall()]
    needed = diff_chunks(known, file.chunks or ())
    _move(connection, file, stamp, known, needed.kept)
    ids = _add(connection, file, stamp, needed.added)
    if ids:
        run(connection, "copy_vectors", {**_place(file, stamp), "ids": listed(ids), "at": stamp["at"]})
    if needed.removed_ids:
        asked = {**_place(file, stamp), "ids": listed(needed.removed_ids)}
        hold(connection, stamp["apikey_hash"])
        run(connection, "bury_slots", asked)
        run(connection, "delete_chunks", asked)
    run(connection, "settle_chunks" if file.chunks is not None else "drop_state", _place(file, stamp))
    return True


def _is_overtaken(file: IndexedFile, row: Mapping[str, Any] | None) -> bool:
    if file.chunks is None:
        return row is not None
    return row is None or row["version"] != file.version


def _move(
    connection: Connection,
    file: IndexedFile,
    stamp: Stamp,
    known: Sequence[IndexedChunk],
    kept: Sequence[tuple[int, int, Chunk]],
) -> None:
    before = {old.id: (old.position, old.start) for old in known}
    moved = [
        {"id": number, "place": place, "low": chunk.start, "high": chunk.end}
        for number, place, chunk in kept
        if before[number] != (place, chunk.start)
    ]
    if moved:
        run(connection, "move_chunks", {**_place(file, stamp), "chunks": json.dumps(moved), "at": stamp["at"]})


def _add(connection: Connection, file: IndexedFile, stamp: Stamp, added: Sequence[tuple[int, Chunk]]) -> list[int]:
    """Add chunks, at places below 0 until all that is gone has left its own."""
    if not added:
        return []
    rows = [
        {
            "place": -1 - place,
            "low": chunk.start,
            "high": chunk.end,
            "text": chunk.text.replace("\0", "\ufffd"),
            "content_hash": chunk.content_hash,
        }
        for place, chunk in added
    ]
    shared = {**_place(file, stamp), "version": file.version, "at": stamp["at"]}
    made = run(connection, "insert_chunks", {**shared, "chunks": json.dumps(rows)}).fetchall()
    ids = {-1 - row["chunk_index"]: row["id"] for row in made}
    words = [
        {"id": ids[place], "tokens": Counter(chunk.tokens), "token_count": len(chunk.tokens)} for place, chunk in added
    ]
    named = {**_place(file, stamp), "tokenizer": stamp["tokenizer"], "at": stamp["at"]}
    run(connection, "insert_words", {**named, "words": json.dumps(words)})
    return sorted(ids.values())


def _place(file: IndexedFile, stamp: Stamp) -> dict[str, Any]:
    return {"apikey_hash": stamp["apikey_hash"], "project": file.project, "path": file.path}
