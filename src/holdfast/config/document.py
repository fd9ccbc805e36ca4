"""Reads a YAML file into plain values and the line of each key; duplicates, aliases and objects are errors."""

import os
from typing import Any

import yaml

from holdfast.errors import InvalidArgument

MAX_FILE_BYTES = 1_000_000

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_text(path: str) -> str:
    """Return the text of a file; InvalidArgument when it cannot be read, is too large or is not UTF-8."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            data = os.read(fd, MAX_FILE_BYTES + 1)
        finally:
            os.close(fd)
    except OSError as error:
        raise InvalidArgument(f"The settings file {path!r} cannot be read: {error.strerror}.") from None
    if len(data) > MAX_FILE_BYTES:
        raise InvalidArgument(f"The settings file {path!r} is larger than {MAX_FILE_BYTES} bytes.")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidArgument(f"The settings file {path!r} is not UTF-8 text.") from None


def read_document(text: str, path: str, root: str) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the mapping below the one top key, and the line of every dotted name.

    A key without a value is left out, so that a section whose lines are all comments is empty.
    Raises InvalidArgument with the line of whatever is not plain YAML.
    """
    builder = _TreeBuilder(path)
    tree = builder.build(text)
    if tree is None:
        return {}, builder.lines
    if not isinstance(tree, dict):
        raise InvalidArgument(f"{path}: expected the one key {root!r} at the top.")
    for key in tree:
        if key != root:
            raise InvalidArgument(
                f"{at_line(path, builder.lines[key])}unknown key {key!r}; the one key at the top is {root!r}."
            )
    under = tree.get(root, {})
    if not isinstance(under, dict):
        raise InvalidArgument(f"{at_line(path, builder.lines[root])}{root}: expected a mapping.")
    return under, builder.lines


def at_line(path: str | None, line: int | None) -> str:
    """Return the place for the start of a message, empty when it is not known."""
    if path is None:
        return ""
    return f"{path}: " if line is None else f"{path}:{line}: "


class _TreeBuilder:
    """Builds plain values from YAML nodes, notes the line of every key and refuses duplicates."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lines: dict[str, int] = {}
        self.visited: set[int] = set()

    def build(self, text: str) -> Any:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            return None if node is None else self._value(loader, node, "")
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else None
            raise InvalidArgument(f"{at_line(self.path, line)}not valid YAML: {error.problem}.") from None
        except (yaml.YAMLError, RecursionError):
            raise InvalidArgument(f"{self.path}: not valid YAML text.") from None
        finally:
            loader.dispose()

    def _value(self, loader: Any, node: yaml.Node, name: str) -> Any:
        line = node.start_mark.line + 1
        if id(node) in self.visited:
            raise InvalidArgument(f"{at_line(self.path, line)}{name} is an alias; write the value out instead.")
        self.visited.add(id(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(loader, node, name)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(loader, item, f"{name}.{index}") for index, item in enumerate(node.value)]
        try:
            return loader.construct_object(node)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise InvalidArgument(
                f"{at_line(self.path, line)}{name}: {node.value!r:.60} is not a plain value."
            ) from None

    def _mapping(self, loader: Any, node: yaml.MappingNode, name: str) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            line = key_node.start_mark.line + 1
            full = f"{name}.{key}" if name else key
            if full in self.lines:
                raise InvalidArgument(
                    f"{at_line(self.path, line)}{full} is set twice; first in line {self.lines[full]}."
                )
            self.lines[full] = line
            value = self._value(loader, value_node, full)
            if value is not None:
                mapping[key] = value
        return mapping
