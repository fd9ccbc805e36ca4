"""state.db, the SQLite file of the state folder: private, write-ahead logged, one writer at a time.

Its rows become plans, items and paths here, and these become rows.
"""

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache
from typing import Any, LiteralString, TypeVar
from urllib.parse import quote

from holdfast.adapters.sqlite.connection import (
    create_private_file,
    enable_wal,
    newer_schema,
    transaction,
    translate_sqlite_errors,
    truncate_log,
)
from holdfast.adapters.sqlite.state.lost import confirm_identity, lost_state_fault, refuse_lost_state
from holdfast.adapters.sqlite.state.migrations import STEPS, migrate
from holdfast.adapters.statements import named_statements
from holdfast.auth.context import ClientInfo
from holdfast.changes.model import ChangeKind, Item, ItemStatus, NodeType, Op, Plan, PlanStatus, is_beneath

Value = TypeVar("Value")

_BUSY_MS = 10_000
_LONG_LOG_BYTES = 16_000_000
"""Above this size the write-ahead log is given back to the disk. One commit may be larger, for a while."""

STATE_DATABASE = "the state database (state.db)"
_OPS = {op.value: op for op in Op}
_NODES = {node.value: node for node in NodeType}
_STATUSES = {status.value: status for status in ItemStatus}
_OP, _NODE, _STATUS, _MTIME = map(Item._fields.index, ("op", "node", "status", "mtime_ns"))
_PATHS = tuple(map(Item._fields.index, ("src_path", "dest_path", "quarantine_path", "unit")))
_INTEGER_LIMIT = 2**63
_NS = "ns"
"""Prefix of a time that is too large for an integer of SQLite, such as one in the year 2446; it is stored as text."""


class Database:
    """A connection shared by every thread under a lock, and a second one that checkpoints the log into the file.

    A durable transaction is on the disk when it ends; any other one is only in the log until the next durable one.
    """

    def __init__(self, path: str) -> None:
        refuse_lost_state(path)
        create_private_file(path)
        self._path = path
        self._lock = threading.RLock()
        self._statements = state_statements()
        self._durable = True
        with state_errors():
            self._connection = _connect(path)
            try:
                migrate(self._connection)
                confirm_identity(self._connection, path)
            except BaseException:
                self._connection.close()
                raise
            self._checkpointer = _connect(path, busy_ms=0)
            self._stretch_log(self._connection)
            self.checkpoint()

    @contextmanager
    def transaction(self, *, durable: bool) -> Iterator[None]:
        """Run several statements as one; an exception rolls all of them back. StorageFull on a full disk."""
        with self._lock, state_errors():
            if durable is not self._durable:
                self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                self._durable = durable
            with transaction(self._connection):
                yield

    def run(self, name: str, parameters: Mapping[str, Any] | None = None) -> sqlite3.Cursor:
        """Run a named statement inside a transaction."""
        return self._connection.execute(self._statements[name], parameters or {})

    def run_many(self, name: str, rows: list[dict[str, Any]]) -> None:
        """Run a named statement once for each row."""
        self._connection.executemany(self._statements[name], rows)

    def fetch(self, name: str, parameters: Mapping[str, Any] | None = None) -> list[sqlite3.Row]:
        """Return all rows of a named query."""
        with self._lock, state_errors():
            return self._connection.execute(self._statements[name], parameters or {}).fetchall()

    def fetch_as(
        self,
        read: Callable[[sqlite3.Row], Value],
        columns: Sequence[str],
        name: str,
        parameters: Mapping[str, Any] | None = None,
    ) -> list[Value]:
        """Return all rows of a named query, each read at once, so that the rows are never all in memory.

        The query must have exactly these columns, in this order, so that `read` may go by position.
        """
        with self._lock, state_errors():
            cursor = self._connection.execute(self._statements[name], parameters or {})
            if [column[0] for column in cursor.description] != [*columns]:
                raise AssertionError(f"the columns of {name} are not {', '.join(columns)}")
            return [read(row) for row in cursor]

    def checkpoint(self) -> None:
        """Move the log's pages into the file, and give the log's space back when it has grown large; no writer waits."""
        with state_errors():
            self._checkpointer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if _size_of(f"{self._path}-wal") > _LONG_LOG_BYTES and truncate_log(self._checkpointer):
                self._stretch_log(self._checkpointer)

    def _stretch_log(self, connection: sqlite3.Connection) -> None:
        """Give the log its size at once: a commit into room that exists takes half as long as one that adds some.

        A process that was killed here has left its table behind. A writer that is busy at this moment comes first.
        """
        with suppress(sqlite3.OperationalError), transaction(connection):
            for statement in (
                "DROP TABLE IF EXISTS stretch",
                "CREATE TABLE stretch (filler BLOB)",
                "INSERT INTO stretch VALUES (zeroblob(4000000))",
                "DROP TABLE stretch",
            ):
                connection.execute(statement)

    def close(self) -> None:
        """Close both connections; the last one to leave removes the log."""
        with self._lock:
            self._checkpointer.close()
            self._connection.close()


def state_statements() -> dict[str, LiteralString]:
    """Return the statements of the journal, its before-images and the reviews, by name."""
    files = ("queries.sql", "images.sql", "reviews.sql")
    return {name: statement for file in files for name, statement in named_statements(__package__, file).items()}


def state_errors() -> AbstractContextManager[None]:
    """Turn what SQLite says about a full, held or damaged state.db into errors of ours."""
    return translate_sqlite_errors(STATE_DATABASE)


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def inspect_database(path: str) -> str | None:
    """Return what is wrong with a state.db, None when it opens, is sound and is in WAL mode. Changes nothing."""
    if (fault := lost_state_fault(path)) is not None or not os.path.exists(path):
        return fault
    try:
        connection = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=5)
    except sqlite3.Error as error:
        return str(error)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > len(STEPS):
            return newer_schema(version, len(STEPS))
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        if mode != "wal":
            return f"its journal mode is {mode!r}, expected 'wal'"
        report = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        return None if report == "ok" else str(report)
    except sqlite3.Error as error:
        return str(error)
    finally:
        connection.close()


def _connect(path: str, busy_ms: int = _BUSY_MS) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    connection.row_factory = sqlite3.Row
    connection.execute(f"PRAGMA busy_timeout = {busy_ms:d}")
    enable_wal(connection)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    register_functions(connection)
    return connection


def register_functions(connection: sqlite3.Connection) -> None:
    """Add the SQL functions that our statements use to a connection."""
    connection.create_function("is_beneath", 2, _is_stored_path_beneath, deterministic=True)


def _is_stored_path_beneath(stored: str | bytes, roots: str) -> bool:
    """Return whether a stored path is one of the roots, a JSON list, or lies inside one."""
    return is_beneath(read_path(stored) or "/", _parse_roots(roots))


@lru_cache(maxsize=64)
def _parse_roots(roots: str) -> tuple[str, ...]:
    return tuple(json.loads(roots))


def plan_row(plan: Plan) -> dict[str, Any]:
    """Return a plan as a row of `plans`."""
    return {
        "id": plan.id,
        "kind": plan.kind.value,
        "root_dir": stored_path(plan.root_dir),
        "other_root": stored_path(plan.other_root),
        "temp_name": plan.temp_name,
        "undoes": plan.undoes,
        "status": plan.status.value,
        "created_at": plan.created_at,
        "stepwise": plan.stepwise,
        "folder": stored_path(plan.folder),
        **client_row(plan.client),
    }


def read_plan(row: Any, items: tuple[Item, ...]) -> Plan:
    """Return a row of `plans` with its items."""
    fields = dict(row)
    fields.update(
        kind=ChangeKind(fields["kind"]), status=PlanStatus(fields["status"]), stepwise=bool(fields["stepwise"])
    )
    fields.update(root_dir=read_path(fields["root_dir"]) or "/", other_root=read_path(fields["other_root"]))
    fields.update(folder=read_path(fields["folder"]))
    client = read_client(row)
    for column in client_row(client):
        del fields[column]
    return Plan(**fields, items=items, client=client)


def client_row(client: ClientInfo) -> dict[str, Any]:
    """Return the columns of `plans` that say which program made a change."""
    return {"client_name": client.name, "client_version": client.version, "by_command": client.is_command}


def read_client(row: Any) -> ClientInfo:
    """Return the program that made a change from a row with its columns."""
    return ClientInfo(row["client_name"], row["client_version"], is_command=bool(row["by_command"]))


def item_row(plan_id: str, position: int, item: Item) -> dict[str, Any]:
    """Return an item as a row of `plan_items`."""
    return {
        "plan_id": plan_id,
        "position": position,
        "op": item.op.value,
        "src_path": stored_path(item.src_path),
        "dest_path": stored_path(item.dest_path),
        "node": item.node.value,
        "before_hash": item.before_hash,
        "after_hash": item.after_hash,
        "size_bytes": item.size_bytes,
        "mode": item.mode,
        "uid": item.uid,
        "gid": item.gid,
        "mtime_ns": item.mtime_ns if abs(item.mtime_ns) < _INTEGER_LIMIT else f"{_NS}{item.mtime_ns}",
        "identity": item.identity,
        "status": item.status.value,
        "error_msg": item.error_msg,
        "reasoning": item.reasoning,
        "confidence": item.confidence,
        "ctime_ns": item.ctime_ns,
        "composite_hash": item.composite_hash,
        "xattrs": item.xattrs,
        "temp_name": item.temp_name,
        "quarantine_path": stored_path(item.quarantine_path),
        "intended_at": item.intended_at,
        "reverses": item.reverses,
        "dest_identity": item.dest_identity,
        "unit": stored_path(item.unit),
        "source_directory": item.source_directory,
        "dest_directory": item.dest_directory,
    }


def read_item(row: Any) -> Item:
    """Return a row of `plan_items` with the columns of `Item._fields`, in that order."""
    fields = list(row)
    fields[_OP], fields[_NODE], fields[_STATUS] = _OPS[fields[_OP]], _NODES[fields[_NODE]], _STATUSES[fields[_STATUS]]
    for path in _PATHS:
        if isinstance(fields[path], bytes):
            fields[path] = read_path(fields[path])
    if isinstance(fields[_MTIME], str):
        fields[_MTIME] = int(fields[_MTIME].removeprefix(_NS))
    return Item._make(fields)


def stored_path(path: str | None) -> str | bytes | None:
    """Return a path as SQLite can hold it: text, or bytes for a name that is not Unicode."""
    if path is None or path.isascii():
        return path
    raw = os.fsencode(path)
    try:
        raw.decode()
    except UnicodeDecodeError:
        return raw
    return path


def read_path(stored: str | bytes | None) -> str | None:
    """Return a path as it was stored."""
    return os.fsdecode(stored) if isinstance(stored, bytes) else stored
