"""Keeps the organiser's file cache and corrections in state.db, with a connection of its own, one transaction a batch.

Cached values can be computed again, so a power cut may lose the newest batches and nothing waits for the disk. Texts are
compressed. In names that are not UTF-8 the bad bytes are replaced: paths in these tables are for people to read.
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

from holdfast.adapters.sqlite.connection import create_private_file, enable_wal, transaction
from holdfast.adapters.sqlite.state.database import state_errors
from holdfast.adapters.sqlite.state.migrations import migrate
from holdfast.adapters.statements import named_statements
from holdfast.clock import utc_now
from holdfast.organiser.model import Evidence, Example, Excerpt, ScannedFile, Verdict
from holdfast.organiser.ports import CachedFile

_BUSY_MS = 10_000
_CACHE_KB = 16_000
_INT64 = 2**63


def open_file_cache(state_dir: str) -> "SqliteFileCache":
    """Open the cache in a state folder; in a server, after the journal, which creates the file."""
    return SqliteFileCache(os.path.join(state_dir, "state.db"))


class SqliteFileCache:
    """Implements `holdfast.organiser.ports.FileCache` and `Corrections`."""

    def __init__(self, path: str) -> None:
        create_private_file(path)
        self._statements = named_statements(__package__, "file_cache.sql")
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        with state_errors():
            for pragma in (
                f"busy_timeout = {_BUSY_MS:d}",
                "synchronous = NORMAL",
                f"cache_size = -{_CACHE_KB:d}",
            ):
                self._connection.execute(f"PRAGMA {pragma}")
            enable_wal(self._connection)
            migrate(self._connection)

    def find_hashes(self, files: Sequence[ScannedFile]) -> list[str | None]:
        """Return the hash of each file whose device, inode, size and mtime are cached."""
        devices = {file.device for file in files}
        if len(devices) == 1:
            return self._find_hashes_on(devices.pop(), files)
        hashes: dict[ScannedFile, str | None] = {}
        for device in devices:
            on_device = [file for file in files if file.device == device]
            hashes.update(zip(on_device, self._find_hashes_on(device, on_device), strict=True))
        return [hashes[file] for file in files]

    def load_excerpts(self, hashes: Sequence[str]) -> dict[str, Excerpt]:
        """Return the excerpts by hash."""
        rows = self._fetch("load_excerpts", {"hashes": json.dumps(list(hashes))})
        return {
            hash_: Excerpt(text=zlib.decompress(text).decode("utf-8", "surrogatepass"), **json.loads(metadata))
            for hash_, metadata, text in rows
        }

    def load_verdicts(self, hashes: Sequence[str], decider: str) -> dict[str, Verdict]:
        """Return the verdicts of exactly this decider, by hash."""
        rows = self._fetch("load_verdicts", {"hashes": json.dumps(list(hashes)), "decider": decider})
        return {hash_: _read_verdict(category, confidence, rest, decider) for hash_, category, confidence, rest in rows}

    def save(self, files: Sequence[CachedFile]) -> None:
        """Save files, all in one transaction."""
        saved_at = utc_now()
        rows = [_file_row(cached, saved_at) for cached in files]
        verdicts = [_verdict_row(cached.file_hash, cached.verdict) for cached in files if cached.verdict]
        with self._transaction():
            self._run_many("save_file", rows)
            self._run_many("save_inode", rows)
            self._run_many("save_verdict", verdicts)

    def trim(self, max_files: int) -> int:
        """Delete the oldest files beyond the maximum and return how many there were."""
        surplus = max(0, int(self._fetch("count_files", {})[0][0]) - max_files)
        if surplus:
            with self._transaction():
                self._run_many("trim_files", [{"surplus": surplus}])
                self._run_many("trim_inodes", [{}])
                self._run_many("trim_verdicts", [{}])
        return surplus

    def save_corrections(self, root_dir: str, examples: Sequence[Example]) -> None:
        """Save corrections made in a folder."""
        root = _to_utf8(root_dir)
        rows = [{"root_dir": root, **asdict(example), "name": _to_utf8(example.name)} for example in examples]
        with self._transaction():
            self._run_many("save_correction", rows)

    def load_corrections(self, root_dir: str) -> list[Example]:
        """Return the corrections made in a folder, oldest first."""
        rows = self._fetch("load_corrections", {"root_dir": _to_utf8(root_dir)})
        return [
            Example(file_hash, name, category, text, content_type)
            for file_hash, name, category, text, content_type in rows
        ]

    def delete_corrections(self, root_dir: str, hashes: Sequence[str]) -> None:
        """Delete the corrections of these files that were made in a folder."""
        root = _to_utf8(root_dir)
        with self._transaction():
            self._run_many("delete_correction", [{"root_dir": root, "file_hash": file_hash} for file_hash in hashes])

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

    def _find_hashes_on(self, device: int, files: Sequence[ScannedFile]) -> list[str | None]:
        inodes = [file.inode for file in files]
        if max(inodes) >= _INT64:
            inodes = [_to_int64(inode) for inode in inodes]
        rows = self._fetch("find_hashes", {"device": _to_int64(device), "inodes": json.dumps(inodes)})
        by_inode = {row[0]: row for row in rows}
        return [
            row[3]
            if (row := by_inode.get(inode))
            and row[1] == file.size
            and (row[2] == file.mtime_ns or row[2] == _to_int64(file.mtime_ns))
            else None
            for inode, file in zip(inodes, files, strict=True)
        ]

    def _fetch(self, name: str, parameters: dict[str, Any]) -> list[Any]:
        with self._lock, state_errors():
            return self._connection.execute(self._statements[name], parameters).fetchall()

    def _run_many(self, name: str, rows: list[dict[str, Any]]) -> None:
        if rows:
            self._connection.executemany(self._statements[name], rows)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock, state_errors(), transaction(self._connection):
            yield


def _to_int64(value: int) -> int:
    """Return a value of the file system as SQLite can hold it: it may use 64 bits unsigned, and a time even more."""
    return value if -_INT64 <= value < _INT64 else (value + _INT64) % (2 * _INT64) - _INT64


def _to_utf8(path: str) -> str:
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "replace")


def _file_row(cached: CachedFile, saved_at: str) -> dict[str, Any]:
    file, metadata, text = cached.file, None, None
    if (excerpt := cached.excerpt) is not None:
        fields = ("tier", "bytes_read", "content_type", "note")
        metadata = json.dumps({name: getattr(excerpt, name) for name in fields})
        text = zlib.compress(excerpt.text.encode("utf-8", "surrogatepass"), 1)
    return {
        "file_hash": cached.file_hash,
        "file_path": _to_utf8(file.path),
        "size_bytes": file.size,
        "mtime": _to_int64(file.mtime_ns),
        "metadata_json": metadata,
        "created_at": saved_at,
        "excerpt": text,
        "device": _to_int64(file.device),
        "inode": _to_int64(file.inode),
    }


def _verdict_row(file_hash: str, verdict: Verdict) -> dict[str, Any]:
    rest = {
        "requires_deep_scan": verdict.requires_deep_scan,
        "reasoning": verdict.reasoning,
        "evidence": asdict(verdict.evidence),
    }
    return {
        "file_hash": file_hash,
        "decider": verdict.decider,
        "category": _to_utf8(verdict.category),
        "confidence": verdict.confidence,
        "verdict_json": json.dumps(rest),
    }


def _read_verdict(category: str, confidence: float, rest: str, decider: str) -> Verdict:
    fields = json.loads(rest)
    stored = fields["evidence"]
    evidence = Evidence(tuple(stored["nearest"]), tuple(stored["terms"]), stored["rule"])
    return Verdict(category, confidence, fields["requires_deep_scan"], fields["reasoning"], evidence, decider)
