"""The call log: takes a record of every call without making it wait, and writes them in batches from a thread of its own."""

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from holdfast.clock import utc_clock
from holdfast.observe.model import CallerLabels, CallFilter, CallRecord, CallStatus, LoggedCall
from holdfast.observe.ports import CallsLost, CallTable
from holdfast.observe.redact import NOT_RECORDED, Redactor

_log = logging.getLogger(__name__)

_BATCH_SECONDS = 0.5
_BATCH_ROWS = 1_000
_MAX_WAITING = 20_000
_MAX_LARGE = 8
_FLUSH_SECONDS = 5.0
_TRIM_ROWS = 2_000
_EXPIRE_SECONDS = 3_600.0
_COMPLAINT_SECONDS = 60.0
_LEFT_OUT: Mapping[str, Any] = {NOT_RECORDED: "too many large calls at once"}


@dataclass(frozen=True)
class CallLogLimits:
    """How long calls stay in the log, and how many of each tenant."""

    keep_days: float = 30.0
    max_rows: int = 200_000


class EndedCall(NamedTuple):
    """A call that ended, before its row is made of it; `started_at` is a POSIX timestamp."""

    tool: str
    caller: CallerLabels
    started_at: float
    duration_ms: float
    status: CallStatus
    code: str
    arguments: Mapping[str, Any]
    is_small: bool


class CallLog:
    """Rows of the user of this machine go to one table, those of tenants to another.

    What cannot be written is dropped and counted, never waited for: a full disk or a slow database fails no call. The
    newest half second is lost when the process is killed.
    """

    def __init__(
        self,
        local_tenant: str,
        local_table: CallTable,
        tenants_table: CallTable,
        redactor: Redactor,
        limits: CallLogLimits,
        on_drop: Callable[[int], None] = lambda _count: None,
        clock: Callable[[], datetime] = utc_clock,
    ) -> None:
        self._local_tenant = local_tenant
        self._tables = {True: local_table, False: tenants_table}
        self._redactor = redactor
        self._limits = limits
        self._on_drop = on_drop
        self._clock = clock
        self._waiting: deque[EndedCall] = deque()
        self._run_id = secrets.token_hex(4)
        self._numbers = count(1)
        self._large = threading.Semaphore(_MAX_LARGE)
        self._is_hurried = threading.Event()
        self._has_work = threading.Event()
        self._is_closed = False
        self._progress = threading.Condition()
        self._added = 0
        self._written = 0
        self._untrimmed: dict[bool, dict[str, int]] = {is_local: {} for is_local in self._tables}
        self._expire_at = time.monotonic()
        self._complained_at = float("-inf")
        self._thread = threading.Thread(target=self._run, name="holdfast-calls", daemon=True)
        self._thread.start()

    def add(self, ended: EndedCall) -> None:
        """Take a call, whose row is made later; from one thread, which never waits."""
        if len(self._waiting) >= _MAX_WAITING or self._is_closed:
            self._on_drop(1)
            return
        if not ended.is_small and not self._large.acquire(blocking=False):
            ended = ended._replace(arguments=_LEFT_OUT)
        self._waiting.append(ended)
        self._added += 1
        if not ended.is_small or len(self._waiting) >= _BATCH_ROWS:
            self._is_hurried.set()
        if not self._has_work.is_set():
            self._has_work.set()

    def find(self, tenant: str, call_filter: CallFilter, limit: int, offset: int = 0) -> list[LoggedCall]:
        """Return the newest calls of a tenant that match, with those that ended just before this one."""
        self.flush()
        return self._tables[tenant == self._local_tenant].find(tenant, call_filter, limit, offset)

    def count(self, tenant: str, call_filter: CallFilter) -> int:
        """Return how many written calls of a tenant match."""
        return self._tables[tenant == self._local_tenant].count(tenant, call_filter)

    def flush(self, seconds: float = _FLUSH_SECONDS) -> None:
        """Write what waits; returns when it is written or the time is over."""
        target = self._added
        self._is_hurried.set()
        self._has_work.set()
        with self._progress:
            self._progress.wait_for(lambda: self._written >= target, seconds)

    def close(self) -> None:
        """Write what waits, and take no more."""
        self._is_closed = True
        self._is_hurried.set()
        self._has_work.set()
        self._thread.join(_FLUSH_SECONDS)
        for table in self._tables.values():
            table.close()

    def _run(self) -> None:
        while True:
            self._has_work.wait(_EXPIRE_SECONDS)
            self._has_work.clear()
            if not self._is_closed:
                self._is_hurried.wait(_BATCH_SECONDS)
            self._is_hurried.clear()
            while self._waiting:
                self._write_batch()
            self._remove_old()
            if self._is_closed and not self._waiting:
                return

    def _write_batch(self) -> None:
        batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), _BATCH_ROWS))]
        for is_local, table in self._tables.items():
            records = [
                self._record_of(ended) for ended in batch if (ended.caller.tenant == self._local_tenant) is is_local
            ]
            if records:
                self._save(table, records, is_local=is_local)
        with self._progress:
            self._written += len(batch)
            self._progress.notify_all()

    def _record_of(self, ended: EndedCall) -> CallRecord:
        """Return the row of a call; a fault in making its parameters costs the parameters alone."""
        parameters = ended.arguments
        if parameters is not _LEFT_OUT:
            try:
                parameters = self._redactor.redact(ended.arguments)
            except Exception as error:  # noqa: BLE001 - the log must never fail
                parameters = {NOT_RECORDED: type(error).__name__}
            if not ended.is_small:
                self._large.release()
        caller = ended.caller
        return CallRecord(
            f"{self._run_id}{next(self._numbers):08x}",
            ended.tool,
            caller.kind,
            caller.tenant,
            caller.identity,
            caller.client_name,
            caller.client_version,
            caller.door,
            datetime.fromtimestamp(ended.started_at, UTC),
            round(ended.duration_ms, 3),
            ended.status,
            ended.code,
            0.0,
            parameters,
        )

    def _save(self, table: CallTable, records: list[CallRecord], *, is_local: bool) -> None:
        fault = self._guard("calls could not be recorded", partial(table.save, records))
        if fault is not None:
            self._on_drop(fault.count if isinstance(fault, CallsLost) else len(records))
            return
        counts = self._untrimmed[is_local]
        for record in records:
            counts[record.tenant] = counts.get(record.tenant, 0) + 1

    def _remove_old(self) -> None:
        """Remove what is too old now and then, and what is too much of a tenant after every few thousand of its calls."""
        is_due = time.monotonic() >= self._expire_at
        if is_due:
            self._expire_at = time.monotonic() + _EXPIRE_SECONDS
            before = self._clock() - timedelta(days=self._limits.keep_days)
            for table in self._tables.values():
                self._guard("old calls could not be removed", partial(table.expire, before))
        for is_local, counts in self._untrimmed.items():
            tenants = [tenant for tenant, count in counts.items() if is_due or count >= _TRIM_ROWS]
            if tenants:
                trim = partial(self._tables[is_local].trim, tenants, self._limits.max_rows)
                self._guard("surplus calls could not be removed", trim)
                for tenant in tenants:
                    del counts[tenant]

    def _guard(self, what_failed: str, work: Callable[[], object]) -> Exception | None:
        """Do some work with a table and return its fault; the log must never fail, and an error may quote what it had."""
        try:
            work()
        except Exception as error:  # noqa: BLE001 - see above
            now = time.monotonic()
            if now - self._complained_at >= _COMPLAINT_SECONDS:
                self._complained_at = now
                _log.warning("%s: %s", what_failed, type(error.__cause__ or error).__name__)
            return error
        return None
