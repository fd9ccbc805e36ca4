"""A real MCP client for tests: the official Python SDK over the stdio relay, driven from plain synchronous code."""

import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.from_thread
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.session import ElicitationFnT
from mcp.client.stdio import stdio_client

Progress = Callable[[float, float | None, str | None], None]

LEGACY = "legacy"
MODERN = "2026-07-28"

_CODES_OF_MESSAGES = {"No such file": "NOT_FOUND", "Access denied": "ACCESS_DENIED"}
"""Of read_multiple_files, which gives no codes."""


@dataclass(frozen=True)
class Reply:
    """What a tool call came back with."""

    result: types.CallToolResult

    @property
    def texts(self) -> list[str]:
        """Return the text blocks."""
        return [block.text for block in self.result.content if isinstance(block, types.TextContent)]

    @property
    def text(self) -> str:
        """Return the text blocks joined by newlines."""
        return "\n".join(self.texts)

    @property
    def data(self) -> dict[str, Any]:
        """Return the structured content; fails when there is none."""
        assert isinstance(self.result.structured_content, dict), self.text
        return self.result.structured_content

    @property
    def is_error(self) -> bool:
        """Return whether the call failed."""
        return bool(self.result.is_error)

    @property
    def error(self) -> dict[str, Any]:
        """Return the error payload; fails when the call succeeded."""
        assert self.is_error, f"expected an error, got: {self.text[:500]}"
        return self.data

    @property
    def code(self) -> str:
        """Return the error code; fails when the call succeeded."""
        return str(self.error["code"])

    @property
    def refusals(self) -> list[str]:
        """Return the code of the error, or of each file that a call for several files was refused; empty when none was."""
        content = self.result.structured_content
        if self.is_error and not (isinstance(content, dict) and content.get("files")):
            return [self.code]
        outcomes = content.get("files", []) if isinstance(content, dict) else []
        codes = [str(outcome["error"]["code"]) for outcome in outcomes if outcome.get("error")]
        codes += re.findall(r"^\[[0-9a-f]{6} \d+/\d+\] .* error ([A-Z_]+): ", self.text, re.MULTILINE)
        messages = re.findall(r"^.*: Error - (No such file|Access denied)", self.text, re.MULTILINE)
        return codes + [_CODES_OF_MESSAGES[message] for message in messages]

    def ok(self) -> Self:
        """Return itself after making sure that the call succeeded."""
        assert not self.is_error, self.text
        return self


def command(*arguments: str) -> list[str]:
    """Return the command line of this checkout's Holdfast."""
    return [sys.executable, "-m", "holdfast", *arguments]


class Agent:
    """One client connection. Use as a context manager; every call blocks until its answer is there."""

    def __init__(
        self,
        roots: Sequence[str | Path],
        state_dir: str | Path,
        *,
        mode: str = MODERN,
        options: Sequence[str] = (),
        cwd: str | Path = "/",
        env: Mapping[str, str] | None = None,
        elicit: ElicitationFnT | None = None,
        name: str = "",
        version: str = "",
        prefix: Sequence[str] = (),
        errors_to: str | Path = os.devnull,
    ) -> None:
        program, *arguments = [*prefix, *command("stdio", *options, *map(str, roots))]
        self._parameters = StdioServerParameters(
            command=program,
            args=arguments,
            env={"HOLDFAST_STATE_DIR": str(state_dir), **(env or {})},
            cwd=str(cwd),
        )
        self._errors_to = Path(errors_to)
        self._mode = mode
        self._elicit = elicit
        self._info = types.Implementation(name=name, version=version) if name else None
        self._stack = ExitStack()
        self.client: Client

    def __enter__(self) -> Self:
        self._portal = self._stack.enter_context(anyio.from_thread.start_blocking_portal())
        errors = self._stack.enter_context(self._errors_to.open("a"))
        streams = stdio_client(self._parameters, errlog=errors)
        client = Client(streams, mode=self._mode, cache=None, elicitation_callback=self._elicit, client_info=self._info)
        self.client = self._stack.enter_context(self._portal.wrap_async_context_manager(client))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def call(self, tool: str, /, **arguments: Any) -> Reply:
        """Call one tool and wait."""
        return self.start(tool, arguments).result(timeout=120)

    def call_with(self, tool: str, arguments: dict[str, Any], progress: Progress | None = None) -> Reply:
        """Call one tool with arguments as a mapping, and listen to its progress."""
        return self.start(tool, arguments, progress).result(timeout=120)

    def start(self, tool: str, arguments: dict[str, Any], progress: Progress | None = None) -> Future[Reply]:
        """Begin a call; cancelling the future sends the protocol's cancellation."""
        return self._portal.start_task_soon(self._call, tool, arguments, progress)

    def parallel(self, calls: Iterable[tuple[str, dict[str, Any]]]) -> list[Reply]:
        """Make all the calls at once and return their replies in order."""
        return [future.result(timeout=120) for future in [self.start(tool, arguments) for tool, arguments in calls]]

    def tools(self) -> list[types.Tool]:
        """Return the listed tools."""
        return self._portal.call(partial(self.client.list_tools)).tools

    async def _call(self, tool: str, arguments: dict[str, Any], listener: Progress | None) -> Reply:
        async def report(progress: float, total: float | None, message: str | None) -> None:
            if listener is not None:
                listener(progress, total, message)

        callback = report if listener is not None else None
        return Reply(await self.client.call_tool(tool, arguments, progress_callback=callback))


AgentFactory = Callable[..., AbstractContextManager[Agent]]

# The SDK warns at each call of a tool that is callable but not listed; two of ours are so by design.
logging.getLogger("client").setLevel(logging.ERROR)
