"""Writes the chunks and words of one file into a tenant's store file, within a transaction."""

import sqlite3
from collections.abc import Mapping, Sequence

from holdfast.adapters.search_parameters import indexed_file_parameters, json_list
from holdfast.adapters.sqlite.search.rows import run, scope_words
from holdfast.search.chunk import diff_chunks
from holdfast.search.model import Chunk, IndexedChunk, IndexedFile

MAX_TRANSACTION_CHUNKS = 256
"""More new chunks than this are written in several transactions, so that writers of the store do not wait for long."""

Stamp = Mapping[str, str]


def insert_part(connection: sqlite3.Connection, file: IndexedFile, stamp: Stamp) -> bool:
    """Insert some of the new chunks of a long file; False when the rest fits into one transaction.

    No part of it is found before `write_file`: until then the indexed version of the file is not the live one.
    """
    if len(file.chunks or ()) <= MAX_TRANSACTION_CHUNKS or _has_changed_since(connection, file, stamp):
        return False
    added = diff_chunks(_load_indexed(connection, file, stamp), file.chunks or ()).added
    if len(added) <= MAX_TRANSACTION_CHUNKS:
        return False
    _add(connection, file, stamp, added[:MAX_TRANSACTION_CHUNKS])
    return True


def write_file(connection: sqlite3.Connection, file: IndexedFile, stamp: Stamp) -> bool:
    """Index a file as it is at its version, or remove it; False when it has changed since."""
    if _has_changed_since(connection, file, stamp):
        return False
    claimed = run(
        connection, "claim_state", {**indexed_file_parameters(file, stamp), "version": file.version, "at": stamp["at"]}
    )
    if claimed.fetchone() is None:
        return False
    indexed = _load_indexed(connection, file, stamp)
    diff = diff_chunks(indexed, file.chunks or ())
    _add(connection, file, stamp, diff.added)
    _move(connection, file, stamp, indexed, diff.unchanged)
    _remove(connection, file, stamp, diff.removed_ids)
    if file.chunks is None:
        run(connection, "delete_state", indexed_file_parameters(file, stamp))
    return True


def _has_changed_since(connection: sqlite3.Connection, file: IndexedFile, stamp: Stamp) -> bool:
    row = run(connection, "live_version", indexed_file_parameters(file, stamp)).fetchone()
    if file.chunks is None:
        return row is not None
    return row is None or row["version"] != file.version


def _load_indexed(connection: sqlite3.Connection, file: IndexedFile, stamp: Stamp) -> list[IndexedChunk]:
    return [IndexedChunk(*row) for row in run(connection, "indexed_chunks", indexed_file_parameters(file, stamp))]


def _add(connection: sqlite3.Connection, file: IndexedFile, stamp: Stamp, added: Sequence[tuple[int, Chunk]]) -> None:
    if not added:
        return
    shared = {
        **indexed_file_parameters(file, stamp),
        **stamp,
        "version": file.version,
        "scope": scope_words(file.project, file.path),
    }
    ids = []
    for position, chunk in added:
        row = {"position": position, "start": chunk.start, "end": chunk.end, "text": chunk.text}
        values = {**shared, **row, "content_hash": chunk.content_hash}
        (chunk_id,) = run(connection, "insert_chunk", values).fetchone()
        ids.append(chunk_id)
        words = {**shared, "id": chunk_id, "tokens": " ".join(chunk.tokens), "token_count": len(chunk.tokens)}
        run(connection, "insert_words", words)
        run(connection, "add_to_full_text", words)
    run(connection, "copy_vectors", {**shared, "ids": json_list(ids)})
    tokens = sum(len(chunk.tokens) for _, chunk in added)
    run(connection, "add_totals", {"apikey_hash": stamp["apikey_hash"], "chunks": len(ids), "tokens": tokens})


def _move(
    connection: sqlite3.Connection,
    file: IndexedFile,
    stamp: Stamp,
    indexed: Sequence[IndexedChunk],
    unchanged: Sequence[tuple[int, int, Chunk]],
) -> None:
    before = {old.id: (old.position, old.start) for old in indexed}
    for chunk_id, position, chunk in unchanged:
        if before[chunk_id] != (position, chunk.start):
            row = {"id": chunk_id, "position": position, "start": chunk.start, "end": chunk.end, "at": stamp["at"]}
            run(connection, "move_chunk", {**indexed_file_parameters(file, stamp), **row})


def _remove(connection: sqlite3.Connection, file: IndexedFile, stamp: Stamp, ids: Sequence[int]) -> None:
    if not ids:
        return
    parameters = {**indexed_file_parameters(file, stamp), "ids": json_list(ids)}
    chunks, tokens = run(connection, "count_tokens", parameters).fetchone()
    run(connection, "remove_from_full_text", parameters)
    run(connection, "add_totals", {"apikey_hash": stamp["apikey_hash"], "chunks": -chunks, "tokens": -int(tokens)})
    run(connection, "delete_chunks", parameters)
