"""`python -m tests.helpers.busy serve …`: Holdfast with one more tool, `spin`, whose thread never ends and never asks."""

from pathlib import Path

from holdfast import wiring
from holdfast.__main__ import main
from holdfast.app import App
from holdfast.call import Call
from holdfast.tools.answer import Answer
from holdfast.tools.registry import Arguments, Effect, Group, Registry, tool


class SpinOf(Arguments):
    """Arguments of spin."""

    started: str


@tool("spin", group=Group.FILES, effect=Effect.READ, title="Spin")
def spin(_app: App, _call: Call, args: SpinOf) -> Answer:
    """Make the file that says that it began, and go on for ever."""
    Path(args.started).touch()
    while True:
        sum(range(1000))


if __name__ == "__main__":
    wiring.TOOLS = Registry([*wiring.TOOLS, spin])
    main()
