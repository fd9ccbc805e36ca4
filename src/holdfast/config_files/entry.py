"""Pure: what an entry starts: the arguments and the environment of `holdfast stdio`, and which entries are ours."""

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

ENTRY_NAME = "holdfast"
"""The name of an entry, unless a person chooses another."""

MANAGED_VARIABLES = ("HOLDFAST_STATE_DIR", "HOLDFAST_SETTINGS")
"""The variables of an entry that are written here; any other one that an entry has stays."""


@dataclass(frozen=True, slots=True)
class EntryOptions:
    """What a person chose for one client."""

    folders: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    read_only: bool = False
    review: bool = False


def stdio_arguments(program: Sequence[str], options: EntryOptions) -> list[str]:
    """Return the arguments after the command, for a program that may itself have some, such as `python -m holdfast`."""
    arguments = [*program[1:], "stdio"]
    if options.tools:
        arguments += ["--tools", ",".join(options.tools)]
    if options.read_only:
        arguments.append("--read-only")
    if options.review:
        arguments.append("--review")
    return [*arguments, *options.folders]


def merge_environment(existing: Mapping[str, str], managed: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of an entry with our variables set as given, or removed, and its own as they are."""
    own = {name: value for name, value in existing.items() if name not in MANAGED_VARIABLES}
    return {**own, **managed}


def starts_holdfast(words: Sequence[str]) -> bool:
    """Return whether a command and its arguments start `holdfast stdio`, by whichever program."""
    return any(posixpath.basename(word) == "holdfast" and following == "stdio" for word, following in pairwise(words))
