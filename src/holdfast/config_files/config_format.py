"""Pure: what can be done with a client's configuration, whatever its format, and the proof that nothing else changed.

A configuration has one section, a mapping from the names of servers to their entries. The formats edit the text
around what is there; whether the edit did what it should is then proved by parsing the result.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Fields = Mapping[str, Any]
"""The fields of an entry: strings, numbers, booleans, lists of strings, and mappings of strings."""


class ConfigFault(Exception):
    """The text is not what its format allows, at a line and column counted from 1."""

    def __init__(self, problem: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {problem}")
        self.line = line
        self.column = column


class CannotEdit(Exception):
    """The text is valid, and its form is one that is not edited here; the message says which."""


@dataclass(frozen=True, slots=True)
class ConfigFormat:
    """One format: how to read a text, and how to add, change and remove an entry in its section.

    `read` returns the data, or raises ConfigFault. `add` expects that the entry is not there, `change` sets fields of
    one that is, `remove` takes it out; all three expect a text that can be read, and may raise CannotEdit.
    """

    read: Callable[[str], dict[str, Any]]
    add: Callable[[str, str, str, Fields], str]
    change: Callable[[str, str, str, Fields], str]
    remove: Callable[[str, str, str], str]


def install_entry(form: ConfigFormat, text: str, section: str, name: str, fields: Fields, defaults: Fields) -> str:
    """Return the text with an entry of these fields.

    An entry that is there keeps its other fields; `defaults` are for a new one. The text comes back as it is when
    there is nothing to do. Raises ConfigFault and CannotEdit.
    """
    before = form.read(text)
    entry = entries(before, section).get(name)
    if entry is None:
        entry_fields = {**defaults, **fields}
        changed = form.add(text, section, name, entry_fields)
    else:
        if not isinstance(entry, dict):
            raise CannotEdit(f"{name!r} in {section!r} is not a mapping")
        entry_fields = {**entry, **fields}
        differing = {key: value for key, value in fields.items() if entry.get(key) != value or key not in entry}
        if not differing:
            return text
        changed = form.change(text, section, name, differing)
    _prove(form, before, changed, section, name, entry_fields)
    return changed


def uninstall_entry(form: ConfigFormat, text: str, section: str, name: str) -> str:
    """Return the text without the entry, the same text when it has none. Raises ConfigFault and CannotEdit."""
    before = form.read(text)
    if name not in entries(before, section):
        return text
    changed = form.remove(text, section, name)
    _prove(form, before, changed, section, name, None)
    return changed


def entries(data: dict[str, Any], section: str) -> dict[str, Any]:
    """Return the entries of the section, none when it is missing or empty. Raises CannotEdit when it is no mapping."""
    servers = data.get(section)
    if servers is None:
        return {}
    if not isinstance(servers, dict):
        raise CannotEdit(f"{section!r} is not a mapping from names to servers")
    return servers


def apply_edits(text: str, edits: list[tuple[int, int, str]]) -> str:
    """Return the text with each span replaced; the spans do not overlap."""
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def position_fault(text: str, at: int, problem: str) -> ConfigFault:
    """Return the fault at an offset of the text."""
    line_start = text.rfind("\n", 0, at) + 1
    return ConfigFault(problem, text.count("\n", 0, at) + 1, at - line_start + 1)


def newline_of(text: str) -> str:
    """Return how the lines of a text end, as the first of them does."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def _prove(
    form: ConfigFormat, before: dict[str, Any], changed: str, section: str, name: str, entry_fields: Fields | None
) -> None:
    try:
        after = form.read(changed)
    except ConfigFault as fault:
        raise CannotEdit(f"the edit would break the file at {fault}") from None
    if entries(after, section).get(name) != entry_fields or _without(after, section, name) != _without(
        before, section, name
    ):
        raise CannotEdit("the edit would touch other entries")


def _without(data: dict[str, Any], section: str, name: str) -> dict[str, Any]:
    """Return the data without the entry; a section that is empty counts as missing."""
    others = {key: value for key, value in entries(data, section).items() if key != name}
    rest = {key: value for key, value in data.items() if key != section}
    return {**rest, section: others} if others else rest
