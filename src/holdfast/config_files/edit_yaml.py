"""Pure: edits YAML, byte for byte around the entry, by the positions that the parser gives each node.

Sections and entries in block form are edited; what is written in braces, or by an alias, is left to the person.
"""

import json
import re
from typing import Any

import yaml

from holdfast.config_files.config_format import (
    CannotEdit,
    ConfigFault,
    ConfigFormat,
    Fields,
    apply_edits,
    newline_of,
    position_fault,
)

_AFTER_VALUE = re.compile(r"[ \t]*(?:#[^\r\n]*)?\r?(?=\n|\Z)")
_COLON = re.compile(r"[ \t]*:")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*$")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


def read(text: str) -> dict[str, Any]:
    """Return the data of a text, empty when it holds nothing. Raises ConfigFault."""
    try:
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise ConfigFault(error.problem or "not valid YAML", line, column) from None
    except yaml.reader.ReaderError as error:
        raise position_fault(text, error.position, "a character that YAML does not allow") from None
    except (RecursionError, ValueError):
        raise ConfigFault("not valid YAML", 1, 1) from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigFault("expected a mapping as the outermost value", 1, 1)
    return data


def add(text: str, section: str, name: str, fields: Fields) -> str:
    """Return the text with a new entry at the end of its section."""
    root = yaml.compose(text)
    newline = newline_of(text)
    if root is None:
        return append_lines(text, [f"{_render_key(section)}:", *_entry_lines(name, fields, "  ")], newline)
    servers = find_pair(_block(root, "the file"), section)
    if servers is None:
        lines = [f"{_render_key(section)}:", *_entry_lines(name, fields, "  ")]
        return insert_lines(text, end_of(root), lines, newline)
    key, value = servers
    if is_empty(value):
        colon = colon_after(text, key)
        end = line_end(text, max(colon, value.end_mark.index))
        comment = text[colon:end].replace("{}", "", 1).replace("null", "", 1).replace("~", "", 1).rstrip()
        lines = _entry_lines(name, fields, "  ")
        return apply_edits(text, [(colon, end, comment + newline + newline.join(lines))])
    indent = " " * _block(value, repr(section)).value[0][0].start_mark.column
    return insert_lines(text, end_of(value), _entry_lines(name, fields, indent), newline)


def change(text: str, section: str, name: str, fields: Fields) -> str:
    """Return the text with these fields of the entry set, and its others as they are."""
    for key, value in fields.items():
        _key, _servers, entry = _find_entry(text, section, name)
        entry_value = _block(entry[1], repr(name))
        pair = find_pair(entry_value, key)
        if pair is None:
            column = entry_value.value[0][0].start_mark.column
            line = f"{' ' * column}{_render_key(key)}: {json.dumps(value, ensure_ascii=False)}"
            text = insert_lines(text, end_of(entry_value), [line], newline_of(text))
            continue
        colon = colon_after(text, pair[0])
        end = max(colon, end_of(pair[1]))
        if pair[1].start_mark.index < pair[0].end_mark.index:
            raise CannotEdit(f"{key!r} of {name!r} is an alias")
        end = colon + len(text[colon:end].rstrip())
        text = apply_edits(text, [(colon, end, f" {json.dumps(value, ensure_ascii=False)}")])
    return text


def remove(text: str, section: str, name: str) -> str:
    """Return the text without the lines of the entry; a section without entries stays as an empty one."""
    key, servers, entry = _find_entry(text, section, name)
    start = text.rfind("\n", 0, entry[0].start_mark.index) + 1
    end = end_of(entry[1])
    if end and text[end - 1] != "\n":
        end = min(line_end(text, end) + 1, len(text))
    edits = [(start, end, "")]
    if len(servers.value) == 1:
        colon = colon_after(text, key)
        edits.append((colon, colon, " {}"))
    return apply_edits(text, edits)


YAML = ConfigFormat(read, add, change, remove)


def _find_entry(text: str, section: str, name: str) -> tuple[yaml.Node, yaml.MappingNode, tuple[yaml.Node, yaml.Node]]:
    root = yaml.compose(text)
    servers = find_pair(_block(root, "the file"), section)
    if servers is None:
        raise CannotEdit(f"there is no {section!r}")
    mapping = _block(servers[1], repr(section))
    entry = find_pair(mapping, name)
    if entry is None:
        raise CannotEdit(f"there is no {name!r} in {section!r}")
    return servers[0], mapping, entry


def _block(node: yaml.Node | None, what: str) -> yaml.MappingNode:
    if not isinstance(node, yaml.MappingNode) or node.flow_style or not node.value:
        raise CannotEdit(f"{what} is not a block of `name: value` lines")
    return node


def find_pair(mapping: yaml.MappingNode, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    """Return a key of a mapping with its value, the last one where it stands twice; None when it is not there."""
    return next((pair for pair in reversed(mapping.value) if pair[0].value == key), None)


def is_empty(node: yaml.Node) -> bool:
    """Return whether a value is missing, null, or holds nothing."""
    return not node.value or (isinstance(node, yaml.ScalarNode) and node.value in ("null", "~"))


def end_of(node: yaml.Node) -> int:
    """Return the end of the last thing that a node holds; the parser's own end of a block is after what follows it."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        following = last[1] if isinstance(last, tuple) else last
        if isinstance(last, tuple) and following.end_mark.index < last[0].end_mark.index:
            raise CannotEdit("the last value is an alias")
        node = following
    return int(node.end_mark.index)


def colon_after(text: str, key: yaml.Node) -> int:
    """Return the offset after the colon of a key."""
    match = _COLON.match(text, key.end_mark.index)
    if match is None:
        raise CannotEdit(f"{key.value!r} is not written as `name: value`")
    return match.end()


def line_end(text: str, at: int) -> int:
    """Return the offset of the end of a line after a value; CannotEdit when more than a comment follows it."""
    match = _AFTER_VALUE.match(text, at)
    if match is None:
        raise CannotEdit("more than one value on a line")
    return match.end()


def insert_lines(text: str, at: int, lines: list[str], newline: str) -> str:
    """Return the text with lines after the one that holds an offset."""
    if at and text[at - 1] == "\n":
        return apply_edits(text, [(at, at, newline.join([*lines, ""]))])
    end = line_end(text, at)
    if end == len(text):
        return append_lines(text, lines, newline)
    return apply_edits(text, [(end + 1, end + 1, newline.join([*lines, ""]))])


def append_lines(text: str, lines: list[str], newline: str) -> str:
    """Return the text with lines at its end."""
    start = text if not text or text.endswith("\n") else text + newline
    return start + newline.join([*lines, ""])


def _entry_lines(name: str, fields: Fields, indent: str) -> list[str]:
    lines = [f"{indent}{_render_key(name)}:"]
    lines += [f"{indent}  {_render_key(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items()]
    return lines


def _render_key(key: str) -> str:
    return key if _PLAIN.match(key) and key.lower() not in _WORDS else json.dumps(key, ensure_ascii=False)
