"""What the organiser remembers of files in state.db, by a connection of its own, a batch in one transaction.

It can all be found out again, so a power cut may take the newest batches; nothing waits for the disk. Texts are kept
compressed. Names that are no Unicode are kept with their strange bytes replaced: paths here are for people to read.
"""

import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from holdfast.adapters.sqlite.connection import create_private_file, enable_wal
from holdfast.adapters.sqlite.state.database import state_transaction
from holdfast.adapters.sqlite.state.migrations import migrate
from holdfast.adapters.statements import named_statements
from holdfast.clock import utc_now
from holdfast.organiser.model import Evidence, Example, Excerpt, ScannedFile, Verdict
from holdfast.organiser.ports import CachedFile

_WHEN_FULL = "The disk of the state folder is full, so nothing more could be remembered."
_BUSY_MS = 10_000
_CACHE_KB = 16_000
_SIGN = 2**63


def open_file_cache(state_dir: str) -> "SqliteFileCache":
    """Open what is remembered of files in a state folder; in a server, after the journal that makes the file."""
    return SqliteFileCache(os.path.join(state_dir, "state.db"))


class SqliteFileCache:
    """Implements `holdfast.organiser.ports.FileCache` and `Examples`."""

    def __init__(self, path: str) -> None:
        create_private_file(path)
        self._statements = named_statements(__package__, "file_cache.sql")
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        for pragma in (
            f"busy_timeout = {_BUSY_MS:d}",
            "synchronous = NORMAL",
            f"cache_size = -{_CACHE_KB:d}",
        ):
            self._connection.execute(f"PRAGMA {pragma}")
        enable_wal(self._connection)
        migrate(self._connection)

    def hashes(self, files: Sequence[ScannedFile]) -> list[str | None]:
        """Return the hash of each file whose device, inode, size and mtime are known."""
        devices = {found.device for found in files}
        if len(devices) == 1:
            return self._hashes_on(devices.pop(), files)
        known: dict[ScannedFile, str | None] = {}
        for device in devices:
            some = [found for found in files if found.device == device]
            known.update(zip(some, self._hashes_on(device, some), strict=True))
        return [known[found] for found in files]

    def excerpts(self, hashes: Sequence[str]) -> dict[str, Excerpt]:
        """Return what the files said when they were read last."""
        rows = self._fetch("excerpts", {"hashes": json.dumps(list(hashes))})
        return {
            hash_: Excerpt(text=zlib.decompress(text).decode("utf-8", "surrogatepass"), **json.loads(metadata))
            for hash_, metadata, text in rows
        }

    def verdicts(self, hashes: Sequence[str], decider: str) -> dict[str, Verdict]:
        """Return what that very decider said of the files."""
        rows = self._fetch("verdicts", {"hashes": json.dumps(list(hashes)), "decider": decider})
        return {hash_: _verdict(category, confidence, rest, decider) for hash_, category, confidence, rest in rows}

    def remember(self, memories: Sequence[CachedFile]) -> None:
        """Keep them, all in one transaction."""
        at = utc_now()
        files = [_file_row(memory, at) for memory in memories]
        verdicts = [_verdict_row(memory.file_hash, memory.verdict) for memory in memories if memory.verdict]
        with self._transaction():
            self._run_many("remember_file", files)
            self._run_many("remember_seen", files)
            self._run_many("remember_verdict", verdicts)

    def trim(self, max_files: int) -> int:
        """Let go of the oldest memories beyond so many."""
        surplus = max(0, int(self._fetch("count_files", {})[0][0]) - max_files)
        if surplus:
            with self._transaction():
                self._run_many("trim_files", [{"surplus": surplus}])
                self._run_many("trim_seen", [{}])
                self._run_many("trim_verdicts", [{}])
        return surplus

    def teach(self, root_dir: str, examples: Sequence[Example]) -> None:
        """Keep corrections made in a folder."""
        with self._transaction():
            self._run_many("teach", [{"root_dir": _text(root_dir), **_example_row(example)} for example in examples])

    def lessons(self, root_dir: str) -> list[Example]:
        """Return the corrections made in a folder, oldest first."""
        return [
            Example(file_hash, name, category, text, content_type)
            for file_hash, name, category, text, content_type in self._fetch("lessons", {"root_dir": _text(root_dir)})
        ]

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

    def _hashes_on(self, device: int, files: Sequence[ScannedFile]) -> list[str | None]:
        inodes = [found.inode for found in files]
        if max(inodes) >= _SIGN:
            inodes = [_signed(inode) for inode in inodes]
        rows = self._fetch("seen_files", {"device": _signed(device), "inodes": json.dumps(inodes)})
        known = {row[0]: row for row in rows}
        return [
            row[3]
            if (row := known.get(inode))
            and row[1] == found.size
            and (row[2] == found.mtime_ns or row[2] == _signed(found.mtime_ns))
            else None
            for inode, found in zip(inodes, files, strict=True)
        ]

    def _fetch(self, name: str, parameters: dict[str, Any]) -> list[Any]:
        with self._lock:
            return self._connection.execute(self._statements[name], parameters).fetchall()

    def _run_many(self, name: str, rows: list[dict[str, Any]]) -> None:
        if rows:
            self._connection.executemany(self._statements[name], rows)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock, state_transaction(self._connection, _WHEN_FULL):
            yield


def _signed(number: int) -> int:
    """Return a number of the file system, which may use all 64 bits and for a time even more, as SQLite can hold it."""
    return number if -_SIGN <= number < _SIGN else (number + _SIGN) % (2 * _SIGN) - _SIGN


def _text(path: str) -> str:
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "replace")


def _file_row(memory: CachedFile, at: str) -> dict[str, Any]:
    found, excerpt = memory.found, memory.excerpt
    return {
        "file_hash": memory.file_hash,
        "file_path": _text(found.path),
        "size_bytes": found.size,
        "mtime": _signed(found.mtime_ns),
        "metadata_json": None if excerpt is None else _facts(excerpt),
        "created_at": at,
        "excerpt": None if excerpt is None else zlib.compress(excerpt.text.encode("utf-8", "surrogatepass"), 1),
        "device": _signed(found.device),
        "inode": _signed(found.inode),
    }


def _facts(excerpt: Excerpt) -> str:
    """Return all of an excerpt but its text."""
    tier, read, kind, note = excerpt.tier, excerpt.bytes_read, excerpt.content_type, excerpt.note
    return json.dumps({"tier": tier, "bytes_read": read, "content_type": kind, "note": note})


def _verdict_row(file_hash: str, verdict: Verdict) -> dict[str, Any]:
    rest = {
        "requires_deep_scan": verdict.requires_deep_scan,
        "reasoning": verdict.reasoning,
        "evidence": asdict(verdict.evidence),
    }
    return {
        "file_hash": file_hash,
        "decider": verdict.decider,
        "category": _text(verdict.category),
        "confidence": verdict.confidence,
        "verdict_json": json.dumps(rest),
    }


def _verdict(category: str, confidence: float, rest: str, decider: str) -> Verdict:
    fields = json.loads(rest)
    told = fields["evidence"]
    evidence = Evidence(tuple(told["nearest"]), tuple(told["terms"]), told["rule"])
    return Verdict(category, confidence, fields["requires_deep_scan"], fields["reasoning"], evidence, decider)


def _example_row(example: Example) -> dict[str, Any]:
    return {**asdict(example), "name": _text(example.name)}
