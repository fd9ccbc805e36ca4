"""Pure: replaces the rules of the policy in the text of a settings file; comments and everything else stay as they are.

A rule that stays keeps its own lines and the comment above it, wherever it moves to. What the edit did is proved by reading
the result.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import yaml

from holdfast.config_files.config_format import CannotEdit, apply_edits, newline_of
from holdfast.config_files.edit_yaml import (
    append_lines,
    colon_after,
    end_of,
    find_pair,
    insert_lines,
    is_empty,
    line_end,
    read,
)

PLACE = ("settings", "policy", "rules")
_STEP = "  "

Rule = Mapping[str, str]
"""The members of a rule that are not empty."""


def replace_rules(text: str, rules: Sequence[Rule]) -> str:
    """Return the text with these rules and no others.

    Raises ConfigFault when it is no YAML, CannotEdit for a form that is left alone.
    """
    before = read(text)
    changed = _replace(text, rules)
    after = read(changed)
    if _rules_in(after) != [dict(rule) for rule in rules] or _without_rules(after) != _without_rules(before):
        raise CannotEdit("the edit would touch other settings")
    return changed


def _replace(text: str, rules: Sequence[Rule]) -> str:
    newline = newline_of(text)
    node = yaml.compose(text)
    if node is None:
        return append_lines(text, _block_lines(PLACE, rules, ""), newline)
    for depth, name in enumerate(PLACE):
        if not isinstance(node, yaml.MappingNode):
            raise CannotEdit(f"{PLACE[depth - 1]!r} is not a mapping")
        pair = find_pair(node, name)
        if pair is None:
            return _insert(text, node, PLACE[depth:], rules, newline)
        key, value = pair
        if value.start_mark.index < key.end_mark.index:
            raise CannotEdit(f"{name!r} is an alias")
        rest = PLACE[depth + 1 :]
        if node.flow_style:
            if not rest or is_empty(value):
                return apply_edits(text, [(value.start_mark.index, value.end_mark.index, _flow(rest, rules))])
        elif is_empty(value) or (not rest and _is_in_brackets(value)):
            return _fill(text, key, value, rest, rules, newline)
        node = value
    return _replace_items(text, key, node, rules, newline)


def _is_in_brackets(node: yaml.Node) -> bool:
    return isinstance(node, yaml.SequenceNode) and bool(node.flow_style)


def _insert(text: str, mapping: yaml.MappingNode, names: Sequence[str], rules: Sequence[Rule], newline: str) -> str:
    """Return the text with a new member in a mapping."""
    if mapping.flow_style:
        start = mapping.start_mark.index + 1
        more = ", " if mapping.value else ""
        return apply_edits(text, [(start, start, f"{json.dumps(names[0])}: {_flow(names[1:], rules)}{more}")])
    indent = " " * mapping.value[0][0].start_mark.column
    return insert_lines(text, end_of(mapping), _block_lines(names, rules, indent), newline)


def _fill(
    text: str, key: yaml.Node, value: yaml.Node, names: Sequence[str], rules: Sequence[Rule], newline: str
) -> str:
    """Return the text with something in the place of a value that is empty, or a list in brackets."""
    colon = colon_after(text, key)
    end = max(colon, end_of(value))
    comment = text[end : line_end(text, end)].rstrip()
    indent = " " * (key.start_mark.column + len(_STEP))
    lines = _block_lines(names, rules, indent) if names else _item_lines(rules, indent)
    inline = "" if names or rules else " []"
    return apply_edits(text, [(colon, line_end(text, end), newline.join([inline + comment, *lines]))])


def _replace_items(text: str, key: yaml.Node, items: yaml.Node | None, rules: Sequence[Rule], newline: str) -> str:
    """Return the text with other items in a list of one line or more for each."""
    if not isinstance(items, yaml.SequenceNode):
        raise CannotEdit(f"{PLACE[-1]!r} is not a list")
    colon = colon_after(text, key)
    first = min(line_end(text, colon) + 1, len(text))
    starts, start = [first], first
    for item in items.value:
        end = end_of(item)
        start = end if text[end - 1 : end] == "\n" else min(line_end(text, end) + 1, len(text))
        starts.append(start)
    pieces = [text[begin:end] for begin, end in pairwise(starts)]
    if not rules:
        return apply_edits(text, [(colon, colon, " []"), (first, starts[-1], "")])
    values = [_as_rule(value) for value in _rules_in(read(text)) or []]
    first_item = items.value[0].start_mark.index
    line = text[text.rfind("\n", 0, first_item) + 1 : first_item]
    indent = line[: len(line) - len(line.lstrip())]
    chosen = _choose(values, pieces, rules, indent, newline)
    whole = "".join(piece if piece.endswith("\n") else piece + newline for piece in chosen)
    return apply_edits(text, [(first, starts[-1], whole)])


def _choose(
    values: Sequence[Rule], pieces: Sequence[str], rules: Sequence[Rule], indent: str, newline: str
) -> list[str]:
    """Return the lines of each rule: its own ones where it was there; a changed one keeps the comment of the one in its place."""
    free = list(range(len(values)))
    kept: dict[int, int] = {}
    for at, rule in enumerate(rules):
        match = next((index for index in free if values[index] == rule), None)
        if match is not None:
            free.remove(match)
            kept[at] = match
    chosen: list[str] = []
    for at, rule in enumerate(rules):
        if at in kept:
            chosen.append(pieces[kept[at]])
            continue
        comment = _comment_above(pieces[at]) if at in free else ""
        chosen.append(comment + newline.join(_item_lines([rule], indent)) + newline)
    return chosen


def _comment_above(piece: str) -> str:
    """Return the lines of a piece before its item."""
    above = ""
    for line in piece.splitlines(keepends=True):
        if line.strip() and not line.lstrip().startswith("#"):
            break
        above += line
    return above


def _block_lines(names: Sequence[str], rules: Sequence[Rule], indent: str) -> list[str]:
    lines = []
    for depth, name in enumerate(names):
        is_empty_list = depth == len(names) - 1 and not rules
        lines.append(f"{indent}{_STEP * depth}{name}:{' []' if is_empty_list else ''}")
    return [*lines, *_item_lines(rules, indent + _STEP * len(names))]


def _item_lines(rules: Sequence[Rule], indent: str) -> list[str]:
    lines: list[str] = []
    for rule in rules:
        members = [f"{name}: {_render(name, value)}" for name, value in rule.items()]
        lines += [f"{indent}{'- ' if at == 0 else _STEP}{member}" for at, member in enumerate(members)]
    return lines


def _render(name: str, value: str) -> str:
    return value if name == "access" else json.dumps(value, ensure_ascii=False)


def _flow(names: Sequence[str], rules: Sequence[Rule]) -> str:
    """Return the rules as JSON, within mappings of these names; JSON is YAML."""
    data: Any = [dict(rule) for rule in rules]
    for name in reversed(names):
        data = {name: data}
    return json.dumps(data, ensure_ascii=False)


def _as_rule(value: object) -> dict[str, str]:
    return {name: str(text) for name, text in value.items() if text != ""} if isinstance(value, dict) else {}


def _rules_in(data: Mapping[str, Any]) -> list[Any] | None:
    node: Any = data
    for name in PLACE:
        node = node.get(name) if isinstance(node, dict) else None
    return node if isinstance(node, list) else None


def _without_rules(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data without the rules; a mapping that is empty counts as missing."""
    settings = data.get(PLACE[0]) or {}
    policy = {name: value for name, value in (settings.get(PLACE[1]) or {}).items() if name != PLACE[2]}
    rest = {name: value for name, value in settings.items() if name != PLACE[1]}
    own = {**rest, **({PLACE[1]: policy} if policy else {})}
    others = {name: value for name, value in data.items() if name != PLACE[0]}
    return {**others, **({PLACE[0]: own} if own else {})}
