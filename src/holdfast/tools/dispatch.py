"""Runs every tool call: finds the tool, applies limits, validates the arguments, runs it and gives every error a code."""

import asyncio
import errno
import logging
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import Any, TypeVar

from pydantic import ValidationError

from holdfast.app import App
from holdfast.auth.context import Caller, CallerKind
from holdfast.auth.limits import Admission
from holdfast.call import Call, Elicit, ProgressSink
from holdfast.config.settings import SearchSettings, Settings
from holdfast.errors import (
    HoldfastError,
    Internal,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    StorageFull,
)
from holdfast.secret import Secret
from holdfast.tools.answer import Answer
from holdfast.tools.elicitation import open_questions
from holdfast.tools.registry import LOCAL_GROUPS, Registry, Tool
from holdfast.tools.threads import CallThreads

_log = logging.getLogger(__name__)

T = TypeVar("T")
_COUNTING_THREADS = 4


class Dispatcher:
    """Runs tools for the doors. It knows no transport; a door knows nothing below it."""

    def __init__(self, app: App, registry: Registry, settings: Settings, admission: Admission | None = None) -> None:
        self._app = app
        self._registry = registry
        self._settings = settings
        self._admission = admission
        self._local_key = _local_key(settings.mcp.files.search)
        self._counting = ThreadPoolExecutor(_COUNTING_THREADS, thread_name_prefix="holdfast-count")
        self._threads = CallThreads(settings.server.max_parallel_calls)

    def close(self, seconds: float = 0.5) -> None:
        """Take no further call, and wait at most that long for the running ones, which were cancelled, to end."""
        self._counting.shutdown(wait=False, cancel_futures=True)
        self._threads.close(seconds)

    def list_tools(self, caller: Caller) -> list[Tool]:
        """Return the tools that this caller is shown."""
        compat = self._settings.folders.compat
        tools = [tool for tool in self._registry if self._is_permitted(caller, tool) and (tool.listed or compat)]
        return tools if any(tool.run for tool in tools) else []

    def find(self, caller: Caller, name: str) -> Tool:
        """Return the tool that this caller may call by that name; NotFound names the nearest one."""
        tool = self._registry.get(name)
        if tool is None or not self._is_permitted(caller, tool):
            raise NotFound(f"There is no tool {name!r}.{self._suggest(caller, name)}")
        return tool

    async def call(
        self,
        caller: Caller,
        name: str,
        arguments: dict[str, Any],
        progress: ProgressSink | None = None,
        elicit: Elicit | None = None,
    ) -> Answer:
        """Run one tool for one caller; cancelling stops the work below.

        Raises HoldfastError and nothing else, but for the InputNeeded of an `elicit` that needs the call made again.
        """
        tool = self.find(caller, name)
        caller = self._with_model_key(caller)
        call = Call(caller, tool.timeout_seconds)
        if progress is not None:
            call.progress = progress
        try:
            await self._admit(caller, tool)
            if tool.mutates and self._settings.folders.read_only and tool.group in LOCAL_GROUPS:
                raise PermissionDenied(f"{name} is refused: this server is in read-only mode.")
            return await self._run(tool, call, _parse_arguments(tool, arguments), elicit)
        except HoldfastError:
            raise
        except UnicodeEncodeError:
            raise InvalidArgument(f"{name}: text must be valid Unicode; an argument holds a lone surrogate.") from None
        except OSError as error:
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
            return await self._threads.run(tool.run, self._app, call, parsed)
        assert tool.run_async is not None
        async with open_questions(call, elicit):
            return await tool.run_async(self._app, call, parsed, _CallerRunner(self, call.caller))

    def _with_model_key(self, caller: Caller) -> Caller:
        """Return the caller with its key for remote models; the user of this machine has it in the settings."""
        if self._local_key is None or not caller.auth.is_local:
            return caller
        return replace(caller, auth=replace(caller.auth, model_key=self._local_key))

    async def _admit(self, caller: Caller, tool: Tool) -> None:
        """Count the call against its limit; counting in another process, which may take long, leaves the event loop free."""
        admission, rate = self._admission, tool.rate_class
        per_minute = admission.allowance(caller, rate) if admission else 0
        if not admission or not per_minute:
            return
        if admission.can_block(caller):
            count = partial(admission.count, caller, rate, per_minute)
            await asyncio.get_running_loop().run_in_executor(self._counting, count)
        else:
            admission.count(caller, rate, per_minute)

    def _is_permitted(self, caller: Caller, tool: Tool) -> bool:
        if tool.audience is not caller.kind:
            return False
        if tool.group in LOCAL_GROUPS and not (caller.auth.is_local and _has_folders(caller)):
            return False
        return self._settings.mcp.permits(tool.name, tool.group)

    def _suggest(self, caller: Caller, name: str) -> str:
        near = get_close_matches(name, [tool.name for tool in self.list_tools(caller)], n=1)
        return f" Did you mean {near[0]!r}?" if near else ""


def _has_folders(caller: Caller) -> bool:
    """Return whether tools of local folders make sense: for the roots of a connection, and for the person, who sees all."""
    return bool(caller.roots) or caller.kind is CallerKind.PERSON


@dataclass(frozen=True, slots=True)
class _CallerRunner:
    """Implements `Runner` for one caller and nobody else."""

    dispatcher: Dispatcher
    caller: Caller

    def find(self, name: str) -> Tool:
        return self.dispatcher.find(self.caller, name)

    async def call(self, name: str, arguments: dict[str, Any], progress: ProgressSink) -> Answer:
        return await self.dispatcher.call(self.caller, name, arguments, progress)

    async def in_thread(self, function: Callable[..., T], *args: Any, is_long: bool = False) -> T:
        return await self.dispatcher._threads.run(function, *args, is_long=is_long)


def _local_key(search: SearchSettings) -> Secret | None:
    """Return the local user's key for models behind HTTP, which may be empty; None when there are no such models."""
    has_remote = search.embedder.kind == "openai" or search.rerank.endpoint
    return Secret(search.embedder.api_key.get_secret_value()) if has_remote else None


def _parse_arguments(tool: Tool, arguments: dict[str, Any]) -> Any:
    try:
        return tool.arguments.model_validate(arguments)
    except ValidationError as error:
        problems = [_describe_problem(tool, detail) for detail in error.errors(include_input=False, include_url=False)]
        raise InvalidArgument(f"{tool.name}: {'; '.join(problems[:5])}") from None


def _describe_problem(tool: Tool, detail: Any) -> str:
    where = ".".join(str(step) for step in detail["loc"]) or "arguments"
    if detail["type"] == "extra_forbidden":
        near = get_close_matches(where, list(tool.input_schema.get("properties", {})), n=1)
        return f"unknown argument {where!r}" + (f" (did you mean {near[0]!r}?)" if near else "")
    if detail["type"] == "missing":
        return f"argument {where!r} is missing"
    return f"argument {where!r}: {detail['msg'][0].lower()}{detail['msg'][1:]}"


def _log_fault(name: str, error: Exception) -> Internal:
    """Log an unexpected error by its kind and place, never by its message, which may hold file content."""
    reference = secrets.token_hex(4)
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(f"{trace.tb_frame.f_code.co_filename.rsplit('/', 2)[-1]}:{trace.tb_lineno}")
        trace = trace.tb_next
    _log.error("fault %s in %s: %s at %s", reference, name, type(error).__name__, " < ".join(reversed(frames[-6:])))
    return Internal(f"{name} failed because of an internal error (reference {reference}); see the server's log.")
