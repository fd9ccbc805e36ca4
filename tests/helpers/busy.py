"""`python -m tests.helpers.busy serve …`: Holdfast with one more tool, `spin`, whose thread never ends and never asks."""

from pathlib import Path

from holdfast.__main__ import main
from holdfast.app import App
from holdfast.call import Call
from holdfast.tools import table
from holdfast.tools.answer import Answer
from holdfast.tools.registry import Arguments, Effect, Group, Registry, tool


class Spin(Arguments):
    """Arguments of spin."""

    started: str


@tool("spin", group=Group.FILES, effect=Effect.READ, title="Spin")
def spin(_app: App, _call: Call, args: Spin) -> Answer:
    """Make the file that says that it began, and go on for ever."""
    Path(args.started).touch()
    while True:
        sum(range(1000))


if __name__ == "__main__":
    table.TOOLS = Registry([*table.TOOLS, spin])
    main()
