"""`holdfast serve` that fails where a caller's words are at hand: `python -m tests.helpers.crashing_server serve …`.

It has one more tool, whose exceptions quote its arguments: in the call, in a thread, and where nobody can catch them. A
request for a path with "crash" in it fails with that path.
"""

import threading

from pydantic import Field
from starlette.routing import Router
from starlette.types import Receive, Scope, Send

from holdfast.app import App
from holdfast.call import Call
from holdfast.cli.main import cli
from holdfast.tools import table
from holdfast.tools.answer import Answer
from holdfast.tools.registry import Arguments, Effect, Group, Registry, tool


class CrashArguments(Arguments):
    """Arguments of crash."""

    path: str = Field(description="Any text.")
    content: str = Field(description="Any text.")


@tool("crash", group=Group.CORE, effect=Effect.READ, title="Crash")
def crash(_app: App, _call: Call, args: CrashArguments) -> Answer:
    """Fail with errors whose messages and locals hold the arguments."""
    message = f"{args.path} {args.content}"
    thread = threading.Thread(target=_fail, args=(message,), name="crashing")
    thread.start()
    thread.join()
    _FailsAtItsEnd(message)
    raise RuntimeError(message)


class _FailsAtItsEnd:
    def __init__(self, message: str) -> None:
        self._message = message

    def __del__(self) -> None:
        raise RuntimeError(self._message)


def _fail(message: str) -> None:
    raise RuntimeError(message)


class CrashingRouter(Router):
    """Routes requests, but for those that shall fail."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Route a request."""
        if "crash" in scope.get("path", ""):
            raise RuntimeError(scope["path"])
        await super().__call__(scope, receive, send)


def main() -> None:
    """Run the command line with what fails."""
    from starlette import applications

    table.TOOLS = Registry([*table.TOOLS, crash])
    vars(applications)["Router"] = CrashingRouter
    cli()


if __name__ == "__main__":
    main()
