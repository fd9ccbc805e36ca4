"""A client whose model sees the text of an answer and nothing else, as many clients hand it on."""

import re
from typing import Any

from tests.helpers.agent import Agent, Progress, Reply


class TextOnlyAgent(Agent):
    """Drops structured content from every answer; `ask` returns the text, and `find` takes from it what comes next."""

    async def _call(self, tool: str, arguments: dict[str, Any], listener: Progress | None) -> Reply:
        reply = await super()._call(tool, arguments, listener)
        return Reply(reply.result.model_copy(update={"structured_content": None}))

    def ask(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool that must succeed, and return its text."""
        return self.call(tool, **arguments).ok().text

    def refused(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool that must fail, and return the text of the error."""
        reply = self.call(tool, **arguments)
        assert reply.is_error, reply.text
        return reply.text


def find(pattern: str, text: str) -> str:
    """Return what the group of a pattern matches in a text; fails by showing the text when nothing does."""
    match = re.search(pattern, text, re.MULTILINE)
    assert match, f"nothing matches {pattern!r} in:\n{text}"
    return match[1]


def handle(name: str, text: str) -> str:
    """Return the value that a text gives for an argument of a later call: `name: value` or `name="value"`."""
    return find(rf'\b{name}(?:: |=")([^"\s,]+)', text)
