"""Runs every tool call: finds the tool, applies limits, validates the arguments, runs it and gives every error a code.

What grows with the request is done in the threads of its caller; the event loop only does what is small.
"""

import asyncio
import errno
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from holdfast.app import App
from holdfast.auth.context import Caller, CallerKind
from holdfast.auth.limits import Admission
from holdfast.auth.rates import Rate
from holdfast.call import Call, ChildNeeded, Elicit, HeavyNeeded, InputNeeded, ProgressSink
from holdfast.config.settings import SearchSettings, Settings
from holdfast.errors import (
    Cancelled,
    HoldfastError,
    Internal,
    InvalidArgument,
    PermissionDenied,
    RateLimited,
    ResourceBusy,
    StorageFull,
    describe_place,
)
from holdfast.folders.finding.path_hints import add_path_hint
from holdfast.observe.metrics import Metrics, Reading
from holdfast.observe.model import UNKNOWN_TOOL, CallerLabels, CallStatus
from holdfast.observe.observer import Observer
from holdfast.observe.spans import SpanContext, carry_span
from holdfast.review.records import may_show_panels
from holdfast.secret import Secret
from holdfast.shares import HALF, Shares
from holdfast.tools.answer import Answer
from holdfast.tools.questions import open_questions
from holdfast.tools.registry import ALWAYS_OFFERED, LOCAL_GROUPS, PersonNeeded, Registry, Tool
from holdfast.tools.threads import CallThreads, Load, PoolLimits
from holdfast.tools.validate import is_small, no_such_tool, parse_arguments

_log = logging.getLogger(__name__)
T = TypeVar("T")
_COUNTING_THREADS = 4


class Dispatcher:
    """Runs tools for the doors. It knows no transport; a door knows nothing below it.

    In `held_bytes` the doors count what they hold of each caller's requests; it belongs to the event loop. `metrics` is
    where the doors count, too.
    """

    def __init__(
        self,
        app: App,
        registry: Registry,
        settings: Settings,
        admission: Admission | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._app = app
        self._observer = observer or Observer(None, Metrics())
        self._registry = registry
        self._settings = settings
        self._admission = admission
        self._local_key = _local_key(settings.mcp.files.search)
        self._counting = ThreadPoolExecutor(_COUNTING_THREADS, thread_name_prefix="holdfast-count")
        limits = settings.server
        self._threads = CallThreads(
            PoolLimits(limits.max_parallel_calls, limits.max_heavy_calls, limits.max_children, limits.max_waiting_calls)
        )
        self.held_bytes = Shares(limits.max_held_bytes, HALF)
        self.metrics = metrics = self._observer.metrics
        metrics.watch(Reading.CALLS_WAITING, self._threads.count_waiting)
        metrics.watch(Reading.CALLS_RUNNING, self._threads.count_running)
        metrics.watch(Reading.HELD_BYTES, lambda: self.held_bytes.taken_places)
        metrics.watch(Reading.HELD_BYTES_LIMIT, lambda: self.held_bytes.total)
        self._max_on_loop = limits.max_waiting_calls
        self._on_loop: Counter[str] = Counter()

    def close(self, seconds: float = 0.5) -> None:
        """Take no further call, and wait at most that long for the running ones, which were cancelled, to end."""
        self._counting.shutdown(wait=False, cancel_futures=True)
        self._threads.close(seconds)

    def list_tools(self, caller: Caller) -> list[Tool]:
        """Return the tools that this caller is shown."""
        compat = self._settings.folders.compat
        tools = [tool for tool in self._registry if self.offers(caller, tool) and (tool.listed or compat)]
        return tools if any(tool.run for tool in tools) else []

    def shows_panels(self, caller: Caller) -> bool:
        """Return whether the caller's client is given the panels; it is then the way to the tools of panels, too."""
        return caller.kind is CallerKind.AGENT and may_show_panels(self._settings.review, caller)

    @property
    def has_panels(self) -> bool:
        """Return whether any client is given the panels."""
        return self._settings.review.channels.panel

    def publish_console(self, url: str) -> None:
        """Say where the console is, for panels that send their reader there."""
        self._app.console.url = url

    def find(self, caller: Caller, name: str) -> Tool:
        """Return the tool that this caller may call by that name; NotFound names the nearest one.

        PermissionDenied when the caller's own restrictions exclude it.
        """
        tool = self._registry.get(name)
        if tool is None or not self._exists_for(caller, tool):
            raise no_such_tool(name, [tool.name for tool in self.list_tools(caller)])
        if refusal := _restriction_on(caller, tool):
            raise PermissionDenied(f"{name} is refused: {refusal}.")
        if tool.mutates and tool.name not in ALWAYS_OFFERED and not caller.auth.may_write:
            raise PermissionDenied(f"{name} is refused: your access token does not have the scope to change anything.")
        return tool

    async def call(
        self,
        caller: Caller,
        name: str,
        arguments: dict[str, Any],
        progress: ProgressSink | None = None,
        elicit: Elicit | None = None,
        on_wait: Callable[[], None] = lambda: None,
        *,
        may_wait: bool = True,
        parent: SpanContext | None = None,
    ) -> Answer:
        """Run one tool for one caller; cancelling stops the work below. `on_wait` is called when it begins to wait, and
        `parent` is the span of the caller's own trace that the call belongs to.

        Raises HoldfastError and nothing else, but for the InputNeeded of an `elicit` that needs the call made again.
        """
        entry, is_light = self._registry.get(name), is_small(arguments)
        tool, is_recorded = (entry.name, entry.is_recorded) if entry else (UNKNOWN_TOOL, True)
        watched = self._observer.begin(tool, parent, is_recorded=is_recorded)
        status, code = CallStatus.OK, ""
        if entry is not None and entry.audience is CallerKind.PANEL and self.shows_panels(caller):
            caller = replace(caller, kind=CallerKind.PANEL)
        try:
            waiting = _WaitOptions(elicit, on_wait, may_wait)
            return await self._run_call(caller, name, arguments, progress, waiting, is_light=is_light)
        except BaseException as error:
            status, code = outcome_of(error)
            raise
        finally:
            watched.end(_labels_of(caller), arguments if entry else {}, status, code, is_small=is_light)

    async def _run_call(
        self,
        caller: Caller,
        name: str,
        arguments: dict[str, Any],
        progress: ProgressSink | None,
        waiting: "_WaitOptions",
        *,
        is_light: bool,
    ) -> Answer:
        tool = self.find(caller, name)
        caller = self._with_model_key(caller)
        call = Call(caller, tool.timeout_seconds, may_wait=waiting.may_wait, is_heavy=tool.load is not Load.LIGHT)
        call.may_start_child = tool.mutates or tool.load is Load.CHILD
        if progress is not None:
            call.progress = progress
        try:
            await self.admit(caller, tool.rate_class)
            if tool.mutates and self._settings.folders.read_only and tool.group in LOCAL_GROUPS:
                raise PermissionDenied(f"{name} is refused: this server is in read-only mode.")
            if is_light:
                parsed = parse_arguments(tool, arguments)
            else:
                parsed = await self.in_thread(caller, parse_arguments, tool, arguments)
            try:
                return await self._run(tool, call, parsed, waiting.elicit)
            except PersonNeeded as person:
                return await self._wait(person, call, waiting)
        except HoldfastError:
            raise
        except UnicodeEncodeError:
            raise InvalidArgument(f"{name}: text must be valid Unicode; an argument holds a lone surrogate.") from None
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise ResourceBusy(
                    f"{name}: too many files and connections are open at once; try again later."
                ) from None
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise _log_fault(name, error) from error
            raise StorageFull(f"{name}: the disk is full; nothing was changed. Free some space on it.") from None
        except Exception as error:
            raise _log_fault(name, error) from error
        finally:
            call.cancel()
            if caller.auth.model_key is not None:
                self._app.on_model_key(caller.auth)

    async def _run(self, tool: Tool, call: Call, parsed: Any, elicit: Elicit | None) -> Answer:
        if tool.run is not None:
            try:
                return await self.in_thread(call.caller, tool.run, self._app, call, parsed, load=tool.load)
            except HeavyNeeded:
                call.is_heavy, load = True, Load.HEAVY
            except ChildNeeded:
                call.may_start_child, load = True, Load.CHILD
            return await self.in_thread(call.caller, tool.run, self._app, call, parsed, load=load)
        assert tool.run_async is not None
        with self._count_on_loop(call.caller):
            async with open_questions(call, elicit):
                return await tool.run_async(self._app, call, parsed, _CallerRunner(self, call.caller))

    async def _wait(self, person: PersonNeeded, call: Call, waiting: "_WaitOptions") -> Answer:
        """Go on with a call that waits for a person, without a thread."""
        waiting.on_wait()
        with self._count_on_loop(call.caller):
            async with open_questions(call, waiting.elicit):
                return await person.wait(call, _CallerRunner(self, call.caller))

    async def in_thread(self, caller: Caller, function: Callable[..., T], *args: Any, load: Load = Load.LIGHT) -> T:
        """Call a blocking function in one of the threads, as part of the caller's share. ResourceBusy when too many wait."""
        return await self._threads.run(
            caller.share, carry_span(_run_with_path_hints), self._app, caller, function, *args, load=load
        )

    @contextmanager
    def _count_on_loop(self, caller: Caller) -> Iterator[None]:
        """Count one call that waits for other calls or for a person; of one caller there may be only so many."""
        if self._on_loop[caller.share] >= self._max_on_loop:
            raise ResourceBusy(f"{self._max_on_loop} of your calls are open already; wait for their answers.")
        self._on_loop[caller.share] += 1
        try:
            yield
        finally:
            self._on_loop[caller.share] -= 1
            if not self._on_loop[caller.share]:
                del self._on_loop[caller.share]

    def _with_model_key(self, caller: Caller) -> Caller:
        """Return the caller with its key for remote models; the user of this machine has it in the settings."""
        if self._local_key is None or not caller.auth.is_local:
            return caller
        return replace(caller, auth=replace(caller.auth, model_key=self._local_key))

    async def admit(self, caller: Caller, rate: Rate) -> None:
        """Count one call against its limit: RateLimited, or PermissionDenied for a key that has been revoked.

        Counting in another process, which may take long, leaves the event loop free.
        """
        admission = self._admission
        per_minute = admission.allowance(caller, rate) if admission else 0
        if not admission or not per_minute:
            return
        try:
            if admission.can_block(caller):
                count = partial(admission.count, caller, rate, per_minute)
                await asyncio.get_running_loop().run_in_executor(self._counting, count)
            else:
                admission.count(caller, rate, per_minute)
        except RateLimited:
            self.metrics.call_limited(rate.value)
            raise

    def offers(self, caller: Caller, tool: Tool) -> bool:
        """Return whether this caller may call a tool."""
        return self._exists_for(caller, tool) and _restriction_on(caller, tool) is None

    def _exists_for(self, caller: Caller, tool: Tool) -> bool:
        is_for_panel = tool.audience is CallerKind.PANEL and self.shows_panels(caller)
        if tool.audience is not caller.kind and not is_for_panel:
            return False
        if tool.group in LOCAL_GROUPS and not (caller.auth.is_local and _has_folders(caller)):
            return False
        return self._settings.mcp.permits(tool.name, tool.group)


def _run_with_path_hints(app: App, caller: Caller, function: Callable[..., T], *args: Any) -> T:
    """Call a function; an error about a path gets a hint at what this caller may use instead."""
    try:
        return function(*args)
    except HoldfastError as error:
        if "path" in error.details and caller.roots and caller.auth.is_local:
            add_path_hint(app.folders_of(caller).jail, error)
        raise


def _has_folders(caller: Caller) -> bool:
    """Return whether tools of local folders make sense: for the roots of a connection, and for the person, who sees all."""
    return bool(caller.roots) or caller.kind is CallerKind.PERSON


def _restriction_on(caller: Caller, tool: Tool) -> str | None:
    """Return why the restrictions of a connection exclude a tool, None when they do not."""
    restrictions = caller.restrictions
    if tool.name in ALWAYS_OFFERED:
        return None
    if restrictions.groups is not None and tool.group not in restrictions.groups:
        offered = ", ".join(sorted(restrictions.groups))
        return f"this connection offers the tools of {offered} only, and it belongs to {tool.group}"
    if restrictions.read_only and tool.mutates:
        return "this connection is read-only"
    return None


@dataclass(frozen=True, slots=True)
class _WaitOptions:
    """How a call may wait for a person: how to ask through the client, whom to tell that it begins, and whether it may."""

    elicit: Elicit | None
    on_wait: Callable[[], None]
    may_wait: bool


@dataclass(frozen=True, slots=True)
class _CallerRunner:
    """Implements `Runner` for one caller and nobody else."""

    dispatcher: Dispatcher
    caller: Caller

    def find(self, name: str) -> Tool:
        return self.dispatcher.find(self.caller, name)

    async def call(self, name: str, arguments: dict[str, Any], progress: ProgressSink) -> Answer:
        return await self.dispatcher.call(self.caller, name, arguments, progress, may_wait=False)

    async def in_thread(self, function: Callable[..., T], *args: Any, load: Load = Load.LIGHT) -> T:
        return await self.dispatcher.in_thread(self.caller, function, *args, load=load)


def outcome_of(error: BaseException) -> tuple[CallStatus, str]:
    """Return how a call that ended with an error is recorded: its status and the error's code."""
    if isinstance(error, HoldfastError):
        return CallStatus.CANCELLED if isinstance(error, Cancelled) else CallStatus.ERROR, error.code
    return (CallStatus.INPUT_REQUIRED, "") if isinstance(error, InputNeeded) else (CallStatus.CANCELLED, Cancelled.code)


def _labels_of(caller: Caller) -> CallerLabels:
    return CallerLabels(
        caller.auth.apikey_hash,
        caller.auth.user_identity,
        CallerKind.PERSON if caller.client.is_command else caller.kind,
        caller.client.name,
        caller.client.version,
        caller.door.value if caller.door else "",
    )


def _local_key(search: SearchSettings) -> Secret | None:
    """Return the local user's key for models behind HTTP, which may be empty; None when there are no such models."""
    has_remote = search.embedder.kind == "openai" or search.rerank.endpoint
    return Secret(search.embedder.api_key.get_secret_value()) if has_remote else None


def _log_fault(name: str, error: Exception) -> Internal:
    """Log an unexpected error by its kind and place, never by its message, which may hold file content."""
    reference = secrets.token_hex(4)
    _log.error("fault %s in %s: %s", reference, name, describe_place(error, 6))
    return Internal(f"{name} failed because of an internal error (reference {reference}); see the server's log.")
