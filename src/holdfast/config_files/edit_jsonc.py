"""Pure: edits JSON with comments and trailing commas, byte for byte around the entry.

The text is scanned into a tree of spans; an edit replaces or inserts a few of them in the style of what is there.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from holdfast.config_files.config_format import (
    CannotEdit,
    ConfigFormat,
    Fields,
    apply_edits,
    newline_of,
    position_fault,
)

_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_REST_OF_LINE = re.compile(r"(?:[ \t]*/\*[^\r\n]*?\*/)*(?:[ \t]*//[^\r\n]*)?")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|(?:true|false|null)\b")
_MAX_DEPTH = 200


@dataclass(slots=True)
class JsonNode:
    """A value with its span; an object has members, in order."""

    start: int
    end: int
    data: Any
    members: list["JsonMember"] = field(default_factory=list)

    def find(self, key: str) -> "JsonMember | None":
        """Return the member that counts: the last one of that name."""
        return next((member for member in reversed(self.members) if member.key == key), None)


@dataclass(slots=True)
class JsonMember:
    """A name with its value; `comma_at` is the offset of the comma after it, None without one."""

    key: str
    start: int
    value: JsonNode
    comma_at: int | None = None


def parse_jsonc(text: str) -> JsonNode | None:
    """Return the tree of a text, None when it holds nothing but comments. Raises ConfigFault."""
    scanner = _Scanner(text)
    at = scanner.skip(0)
    if at == len(text):
        return None
    root = scanner.read_value(at, 0)
    end = scanner.skip(root.end)
    if end != len(text):
        raise position_fault(text, end, "expected the end of the file after the outermost value")
    if not isinstance(root.data, dict):
        raise position_fault(text, at, "expected an object { } as the outermost value")
    return root


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text

    def skip(self, at: int) -> int:
        """Return the offset after blanks and comments."""
        match = _TRIVIA.match(self._text, at)
        end = match.end() if match else at
        if self._text.startswith("/*", end):
            raise position_fault(self._text, end, "a comment that does not end")
        return end

    def read_value(self, at: int, depth: int) -> JsonNode:
        if depth > _MAX_DEPTH:
            raise position_fault(self._text, at, f"nested more than {_MAX_DEPTH} levels deep")
        char = self._text[at : at + 1]
        if char == "{":
            return self._read_object(at, depth)
        if char == "[":
            return self._read_list(at, depth)
        if char == '"':
            end, data = self._read_string(at)
            return JsonNode(at, end, data)
        match = _SCALAR.match(self._text, at)
        if match is None:
            raise position_fault(self._text, at, f"expected a value{self._instead_of(at)}")
        return JsonNode(at, match.end(), json.loads(match[0]))

    def _read_object(self, start: int, depth: int) -> JsonNode:
        members: list[JsonMember] = []
        at = self.skip(start + 1)
        while not self._text.startswith("}", at):
            if members and members[-1].comma_at is None:
                raise position_fault(self._text, at, f"expected ',' or '}}'{self._instead_of(at)}")
            key_start = at
            if not self._text.startswith('"', at):
                raise position_fault(self._text, at, f"expected a name in double quotes{self._instead_of(at)}")
            at, key = self._read_string(at)
            at = self.skip(at)
            if not self._text.startswith(":", at):
                raise position_fault(self._text, at, f"expected ':' after a name{self._instead_of(at)}")
            member = JsonMember(key, key_start, self.read_value(self.skip(at + 1), depth + 1))
            members.append(member)
            at = self.skip(member.value.end)
            if self._text.startswith(",", at):
                member.comma_at = at
                at = self.skip(at + 1)
        data = {member.key: member.value.data for member in members}
        return JsonNode(start, at + 1, data, members)

    def _read_list(self, start: int, depth: int) -> JsonNode:
        items: list[Any] = []
        at, has_comma = self.skip(start + 1), True
        while not self._text.startswith("]", at):
            if not has_comma:
                raise position_fault(self._text, at, f"expected ',' or ']'{self._instead_of(at)}")
            item = self.read_value(at, depth + 1)
            items.append(item.data)
            at = self.skip(item.end)
            has_comma = self._text.startswith(",", at)
            at = self.skip(at + 1) if has_comma else at
        return JsonNode(start, at + 1, items)

    def _read_string(self, at: int) -> tuple[int, str]:
        match = _STRING.match(self._text, at)
        if match is None:
            raise position_fault(self._text, at, "a string that does not end on its line, or has a wrong escape")
        return match.end(), json.loads(match[0])

    def _instead_of(self, at: int) -> str:
        return f", not {self._text[at]!r}" if at < len(self._text) else ", not the end of the file"


def read(text: str) -> dict[str, Any]:
    """Return the data of a text, empty when it holds nothing. Raises ConfigFault."""
    root = parse_jsonc(text)
    return root.data if root is not None else {}


def add(text: str, section: str, name: str, fields: Fields) -> str:
    """Return the text with a new entry at the end of its section."""
    root = parse_jsonc(text)
    if root is None:
        newline = newline_of(text)
        start = text if not text or text.endswith("\n") else text + newline
        return start + _render({section: {name: dict(fields)}}, "  ", "", newline) + newline
    servers = root.find(section)
    if servers is None:
        return _insert(text, root, root, section, {name: dict(fields)})
    if servers.value.data is None:
        rendered = _render({name: dict(fields)}, _unit(text, root), _indent_at(text, servers.start), newline_of(text))
        return apply_edits(text, [(servers.value.start, servers.value.end, rendered)])
    return _insert(text, root, servers.value, name, dict(fields))


def change(text: str, section: str, name: str, fields: Fields) -> str:
    """Return the text with these fields of the entry set, and its others as they are."""
    for key, value in fields.items():
        root, servers = _find_section(text, section)
        entry = servers.find(name)
        if entry is None:
            raise CannotEdit(f"there is no {name!r} in {section!r}")
        member = entry.value.find(key)
        if member is None:
            text = _insert(text, root, entry.value, key, value)
            continue
        start, end = member.value.start, member.value.end
        if "\n" in text[start:end]:
            rendered = _render(value, _unit(text, root), _indent_at(text, member.start), newline_of(text))
        else:
            rendered = json.dumps(value, ensure_ascii=False)
        text = apply_edits(text, [(start, end, rendered)])
    return text


def remove(text: str, section: str, name: str) -> str:
    """Return the text without the entry, its line and its comma; comments on other lines stay."""
    _root, servers = _find_section(text, section)
    member = servers.find(name)
    if member is None:
        raise CannotEdit(f"there is no {name!r} in {section!r}")
    index = servers.members.index(member)
    end = member.value.end if member.comma_at is None else member.comma_at + 1
    edits: list[tuple[int, int, str]] = []
    if member.comma_at is None and index > 0:
        comma = servers.members[index - 1].comma_at
        assert comma is not None
        edits.append((comma, comma + 1, ""))
    line_start = text.rfind("\n", 0, member.start) + 1
    line_end = _rest_of_line(text, end)
    has_own_lines = not text[line_start : member.start].strip() and text[line_end:].lstrip(" \t").startswith(
        ("\r", "\n")
    )
    if has_own_lines and line_start > servers.start:
        newline = 2 if text[line_start - 2 : line_start] == "\r\n" else 1
        edits.append((line_start - newline, line_end, ""))
    elif member is servers.members[-1]:
        edits.append((_end_before(text, servers, index), end, ""))
    else:
        blanks = len(text[end:]) - len(text[end:].lstrip(" \t"))
        edits.append((member.start, end + blanks, ""))
    return apply_edits(text, edits)


JSONC = ConfigFormat(read, add, change, remove)


def _find_section(text: str, section: str) -> tuple[JsonNode, JsonNode]:
    root = parse_jsonc(text)
    servers = root.find(section) if root is not None else None
    if root is None or servers is None:
        raise CannotEdit(f"there is no {section!r}")
    return root, servers.value


def _insert(text: str, root: JsonNode, parent: JsonNode, key: str, value: object) -> str:
    """Return the text with a member at the end of an object, in the style of the members that are there."""
    newline, unit = newline_of(text), _unit(text, root)
    last = parent.members[-1] if parent.members else None
    is_on_one_line = "\n" not in text[parent.start : parent.end]
    if last is not None and is_on_one_line:
        is_tight = ": " not in text[parent.start : parent.end]
        rendered = json.dumps({key: value}, ensure_ascii=False, separators=(",", ":") if is_tight else (", ", ": "))
        member, blank = rendered[1:-1], "" if is_tight else " "
        if last.comma_at is None:
            return apply_edits(text, [(last.value.end, last.value.end, f",{blank}{member}")])
        return apply_edits(text, [(last.comma_at + 1, last.comma_at + 1, f"{blank}{member},")])
    outer = _indent_at(text, parent.start)
    inner = outer + unit if last is None else _indent_at(text, parent.members[0].start)
    member = f"{json.dumps(key, ensure_ascii=False)}: {_render(value, unit, inner, newline)}"
    if last is None:
        comments = text[parent.start + 1 : parent.end - 1].rstrip(" \t\r\n")
        body = f"{comments}{newline}{inner}{member}{newline}{outer}"
        return apply_edits(text, [(parent.start + 1, parent.end - 1, body)])
    if last.comma_at is None:
        end = last.value.end
        at = _rest_of_line(text, end)
        return apply_edits(text, [(end, at, f",{text[end:at]}{newline}{inner}{member}")])
    at = _rest_of_line(text, last.comma_at + 1)
    return apply_edits(text, [(at, at, f"{newline}{inner}{member},")])


def _rest_of_line(text: str, at: int) -> int:
    """Return the offset after the comments that follow on the line, the offset itself when none does."""
    match = _REST_OF_LINE.match(text, at)
    return match.end() if match else at


def _end_before(text: str, parent: JsonNode, index: int) -> int:
    """Return the end of what stands before a member, a line comment with the line ending that it needs."""
    start = parent.members[index].start
    if index == 0:
        return start
    comma = parent.members[index - 1].comma_at
    assert comma is not None
    between = text[comma + 1 : start]
    comments = _COMMENT.findall(between)
    has_line_comment = bool(comments) and comments[-1].startswith("//")
    return comma + 1 + len(between.rstrip(" \t") if has_line_comment else between.rstrip())


def _render(value: object, unit: str, indent: str, newline: str) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return f"{newline}{indent}".join(lines)


def _indent_at(text: str, at: int) -> str:
    """Return the blanks at the beginning of the line that holds an offset."""
    line = text[text.rfind("\n", 0, at) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str, root: JsonNode) -> str:
    """Return one step of indentation, as the first member has it."""
    if root.members and "\n" in text[root.start : root.members[0].start]:
        indent = _indent_at(text, root.members[0].start).removeprefix(_indent_at(text, root.start))
        return indent or "  "
    return "  "
