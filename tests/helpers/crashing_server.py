"""`holdfast serve` with one more tool, whose exception quotes its argument: `python -m tests.helpers.crashing_server …`."""

from pydantic import Field

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
    """Fail with an error whose message and locals hold the arguments."""
    message = f"{args.path} {args.content}"
    raise RuntimeError(message)


if __name__ == "__main__":
    table.TOOLS = Registry([*table.TOOLS, crash])
    cli()
