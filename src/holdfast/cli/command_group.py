"""A group of commands whose help page names each of them in a whole phrase, under headings where it has some."""

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

import click

_END_OF_CLAUSE = re.compile(r"[;:] |\. |\.$")
_NO_LIMIT = 1_000


class CommandGroup(click.Group):
    """A click group that lists its commands by the first clause of what they do, never cut in the middle."""

    headings: ClassVar[Mapping[str, Sequence[str]]] = {}
    """The headings of the list with the names of the commands below each; without any, one list of all."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands into a help page."""
        width = max(map(len, self.list_commands(ctx)), default=0)
        for heading, names in (self.headings or {"Commands": self.list_commands(ctx)}).items():
            rows = [(f"{name:<{width}}", _first_clause(self.get_command(ctx, name))) for name in names]
            with formatter.section(heading):
                formatter.write_dl(rows)


def _first_clause(command: click.Command | None) -> str:
    if command is None:
        return ""
    return _END_OF_CLAUSE.split(command.get_short_help_str(_NO_LIMIT), maxsplit=1)[0]
