"""Writes one file's chunks and words into a tenant's store file, inside a transaction."""

import sqlite3
from collections.abc import Mapping, Sequence

from holdfast.adapters.sqlite.search.rows import listed, run, scope_words
from holdfast.search.chunk import diff_chunks
from holdfast.search.model import Chunk, IndexedChunk, IndexedFile

CHUNKS_AT_ONCE = 256
"""More new chunks than these go in by transactions of their own, so that the store's writers do not wait for long."""

Stamp = Mapping[str, str]


def fill(connection: sqlite3.Connection, file: IndexedFile, stamp: Stamp) -> bool:
    """Put in a part of a long file's new chunks; False when the rest is little enough for one transaction.

    Nothing of it is found before `write`: until then the index holds another version of the file than the live one.
    """
    if len(file.chunks or ()) <= CHUNKS_AT_ONCE or _is_overtaken(connection, file, stamp):
        return False
    added = diff_chunks(_known(connection, file, stamp), file.chunks or ()).added
    if len(added) <= CHUNKS_AT_ONCE:
        return False
    _add(connection, file, stamp, added[:CHUNKS_AT_ONCE])
    return True


def write(connection: sqlite3.Connection, file: IndexedFile, stamp: Stamp) -> bool:
    """Make the index hold a file as it is at its version, or no more; False when it was overtaken."""
    if _is_overtaken(connection, file, stamp):
        return False
    taken = run(connection, "take_state", {**_place(file, stamp), "version": file.version, "at": stamp["at"]})
    if taken.fetchone() is None:
        return False
    known = _known(connection, file, stamp)
    needed = diff_chunks(known, file.chunks or ())
    _add(connection, file, stamp, needed.added)
    _move(connection, file, stamp, known, needed.kept)
    _remove(connection, file, stamp, needed.removed_ids)
    if file.chunks is None:
        run(connection, "drop_state", _place(file, stamp))
    return True


def _is_overtaken(connection: sqlite3.Connection, file: IndexedFile, stamp: Stamp) -> bool:
    row = run(connection, "live_version", _place(file, stamp)).fetchone()
    if file.chunks is None:
        return row is not None
    return row is None or row["version"] != file.version


def _known(connection: sqlite3.Connection, file: IndexedFile, stamp: Stamp) -> list[IndexedChunk]:
    return [IndexedChunk(*row) for row in run(connection, "known_chunks", _place(file, stamp))]


def _add(connection: sqlite3.Connection, file: IndexedFile, stamp: Stamp, added: Sequence[tuple[int, Chunk]]) -> None:
    if not added:
        return
    shared = {**_place(file, stamp), **stamp, "version": file.version, "scope": scope_words(file.project, file.path)}
    ids = []
    for place, chunk in added:
        row = {"place": place, "start": chunk.start, "end": chunk.end, "text": chunk.text}
        values = {**shared, **row, "content_hash": chunk.content_hash}
        (number,) = run(connection, "insert_chunk", values).fetchone()
        ids.append(number)
        words = {**shared, "id": number, "tokens": " ".join(chunk.tokens), "token_count": len(chunk.tokens)}
        run(connection, "insert_words", words)
        run(connection, "add_words", words)
    run(connection, "copy_vectors", {**shared, "ids": listed(ids)})
    tokens = sum(len(chunk.tokens) for _, chunk in added)
    run(connection, "add_totals", {"apikey_hash": stamp["apikey_hash"], "chunks": len(ids), "tokens": tokens})


def _move(
    connection: sqlite3.Connection,
    file: IndexedFile,
    stamp: Stamp,
    known: Sequence[IndexedChunk],
    kept: Sequence[tuple[int, int, Chunk]],
) -> None:
    before = {old.id: (old.position, old.start) for old in known}
    for number, place, chunk in kept:
        if before[number] != (place, chunk.start):
            row = {"id": number, "place": place, "start": chunk.start, "end": chunk.end, "at": stamp["at"]}
            run(connection, "move_chunk", {**_place(file, stamp), **row})


def _remove(connection: sqlite3.Connection, file: IndexedFile, stamp: Stamp, gone: Sequence[int]) -> None:
    if not gone:
        return
    asked = {**_place(file, stamp), "ids": listed(gone)}
    chunks, tokens = run(connection, "words_of", asked).fetchone()
    run(connection, "remove_words", asked)
    run(connection, "add_totals", {"apikey_hash": stamp["apikey_hash"], "chunks": -chunks, "tokens": -int(tokens)})
    run(connection, "delete_chunks", asked)


def _place(file: IndexedFile, stamp: Stamp) -> dict[str, str]:
    return {"apikey_hash": stamp["apikey_hash"], "project": file.project, "path": file.path}
