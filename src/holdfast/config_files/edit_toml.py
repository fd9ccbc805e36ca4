"""Pure: edits TOML, byte for byte around the entry, which is a table of its own.

The standard library reads TOML and says where it is broken. What it does not say is where a statement stands, so a
scanner finds the tables and their statements in a text that is known to be valid.
"""

import json
import re
import tomllib
from dataclasses import dataclass, field
from typing import Any

from holdfast.config_files.config_format import (
    CannotEdit,
    ConfigFault,
    ConfigFormat,
    Fields,
    apply_edits,
    newline_of,
    position_fault,
)

_TRIVIA = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BLANKS = re.compile(r"[ \t]*")
_PART = r'(?:"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|[A-Za-z0-9_-]+)'
_KEY = re.compile(rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*")
_KEY_PART = re.compile(_PART)
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'',
    re.DOTALL,
)
_BARE = re.compile(r"[^#\r\n]*")
_INSIDE = re.compile(r"[^\[\]{}\"'#]+|#[^\n]*")
_POSITION = re.compile(r"(?P<problem>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)$")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+$")

Path = tuple[str, ...]


@dataclass(slots=True)
class TomlStatement:
    """A key with its value."""

    path: Path
    start: int
    value_start: int
    end: int


@dataclass(slots=True)
class TomlTable:
    """A header with the statements beneath it; the table before the first header has an empty path."""

    path: Path
    start: int
    header_end: int
    statements: list[TomlStatement] = field(default_factory=list)

    @property
    def end(self) -> int:
        """Return the end of what belongs to the table."""
        return self.statements[-1].end if self.statements else self.header_end


def read(text: str) -> dict[str, Any]:
    """Return the data of a text. Raises ConfigFault."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _POSITION.match(str(error))
        if match is None or match["line"] is None:
            raise position_fault(text, len(text), match["problem"] if match else str(error)) from None
        raise ConfigFault(match["problem"], int(match["line"]), int(match["column"])) from None
    except RecursionError:
        raise ConfigFault("nested too deep", 1, 1) from None


def add(text: str, section: str, name: str, fields: Fields) -> str:
    """Return the text with a new table at its end."""
    newline = newline_of(text)
    if any(statement.path == (section,) for table in scan_toml(text) for statement in table.statements):
        raise CannotEdit(f"{section!r} is an inline table")
    lines = [f"[{_render_key(section)}.{_render_key(name)}]"]
    lines += [f"{_render_key(key)} = {_render(value)}" for key, value in fields.items()]
    start = text if not text or text.endswith("\n") else text + newline
    return start + (newline if start else "") + newline.join(lines) + newline


def change(text: str, section: str, name: str, fields: Fields) -> str:
    """Return the text with these fields of the entry set, and its others as they are."""
    for key, value in fields.items():
        tables = scan_toml(text)
        nested = [table for table in tables if table.path[:3] == (section, name, key)]
        if nested:
            text = _remove_tables(text, nested)
            tables = scan_toml(text)
        entry = next((table for table in tables if table.path == (section, name)), None)
        if entry is None:
            raise CannotEdit(f"{name!r} is not a table [{section}.{name}]")
        statements = [statement for statement in entry.statements if statement.path[0] == key]
        if any(len(statement.path) > 1 for statement in statements):
            raise CannotEdit(f"{key!r} of {name!r} is written with dotted keys")
        if statements:
            text = apply_edits(text, [(statements[0].value_start, statements[0].end, _render(value))])
        else:
            at = _line_end(text, entry.end)
            line = f"{_render_key(key)} = {_render(value)}"
            text = apply_edits(text, [(at, at, f"{newline_of(text)}{line}")])
    return text


def remove(text: str, section: str, name: str) -> str:
    """Return the text without the tables of the entry, and without one empty line before each."""
    tables = [table for table in scan_toml(text) if table.path[:2] == (section, name)]
    if not tables:
        raise CannotEdit(f"{name!r} is not a table [{section}.{name}]")
    return _remove_tables(text, tables)


TOML = ConfigFormat(read, add, change, remove)


def scan_toml(text: str) -> list[TomlTable]:
    """Return the tables of a valid text, in order, the first without a header."""
    tables = [TomlTable((), 0, 0)]
    at = _skip(text, 0)
    while at < len(text):
        if text[at] == "[":
            is_array = text.startswith("[[", at)
            path, end = _scan_key(text, at + (2 if is_array else 1))
            end = text.index("]", end) + (2 if is_array else 1)
            tables.append(TomlTable(path, at, end))
        else:
            path, end = _scan_key(text, at)
            value_start = _end_of(_BLANKS, text, text.index("=", end) + 1)
            end = _value_end(text, value_start)
            tables[-1].statements.append(TomlStatement(path, at, value_start, end))
        at = _skip(text, end)
    return tables


def _skip(text: str, at: int) -> int:
    return _end_of(_TRIVIA, text, at)


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _scan_key(text: str, at: int) -> tuple[Path, int]:
    at = _end_of(_BLANKS, text, at)
    match = _KEY.match(text, at)
    if match is None:
        raise CannotEdit("a key that is not understood")
    parts = [part[0] for part in _KEY_PART.finditer(match[0])]
    return tuple(_unquote(part) for part in parts), match.end()


def _unquote(part: str) -> str:
    return str(tomllib.loads(f"key = {part}")["key"]) if part[0] in "\"'" else part


def _value_end(text: str, at: int) -> int:
    string = _STRING.match(text, at)
    if string is not None:
        return string.end()
    if text[at] not in "[{":
        return at + len(_BARE.match(text, at)[0].rstrip())  # type: ignore[index]  # it matches an empty text too
    depth = 0
    while True:
        string = _STRING.match(text, at)
        if string is not None:
            at = string.end()
            continue
        depth += (text[at] in "[{") - (text[at] in "]}")
        at = at + 1 if text[at] in "[]{}" else _end_of(_INSIDE, text, at)
        if depth == 0:
            return at


def _line_end(text: str, at: int) -> int:
    """Return the end of the line that holds an offset, before its line ending."""
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    return end - 1 if text[end - 1 : end] == "\r" else end


def _remove_tables(text: str, tables: list[TomlTable]) -> str:
    edits = []
    for table in tables:
        start = text.rfind("\n", 0, table.start) + 1
        empty = re.search(r"(?:^|(?<=\n))[ \t]*\r?\n$", text[:start])
        start = empty.start() if empty is not None else start
        end = text.find("\n", table.end) + 1 or len(text)
        edits.append((start, end, ""))
    return apply_edits(text, edits)


def _render_key(key: str) -> str:
    return key if _BARE_KEY.match(key) else _render(key)


def _render(value: object) -> str:
    if isinstance(value, dict):
        members = ", ".join(f"{_render_key(key)} = {_render(item)}" for key, item in value.items())
        return f"{{ {members} }}" if members else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_render, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
