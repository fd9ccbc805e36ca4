"""Reads a YAML file into plain values that remember their lines: no duplicates, no aliases, no objects."""

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
    """Return what stands under the one top key, and the line of every dotted name.

    A key without a value is left out, so that a section whose lines are all comments is empty.
    Raises InvalidArgument with the line of whatever is not plain YAML.
    """
    reader = _Tree(path)
    tree = reader.build(text)
    if tree is None:
        return {}, reader.lines
    if not isinstance(tree, dict):
        raise InvalidArgument(f"{path}: expected the one key {root!r} at the top.")
    for key in tree:
        if key != root:
            raise InvalidArgument(
                f"{at_line(path, reader.lines[key])}unknown key {key!r}; the one key at the top is {root!r}."
            )
    under = tree.get(root, {})
    if not isinstance(under, dict):
        raise InvalidArgument(f"{at_line(path, reader.lines[root])}{root}: expected a mapping.")
    return under, reader.lines


def at_line(path: str | None, line: int | None) -> str:
    """Return the place that a message starts with, empty when none is known."""
    if path is None:
        return ""
    return f"{path}: " if line is None else f"{path}:{line}: "


class _Tree:
    """Builds plain values from YAML nodes, so that every key keeps its line and none can stand twice."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lines: dict[str, int] = {}
        self.seen: set[int] = set()

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
        if id(node) in self.seen:
            raise InvalidArgument(f"{at_line(self.path, line)}an alias stands for {name}; write the value out instead.")
        self.seen.add(id(node))
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
        built: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            line = key_node.start_mark.line + 1
            full = f"{name}.{key}" if name else key
            if full in self.lines:
                raise InvalidArgument(
                    f"{at_line(self.path, line)}{full} stands twice; it was first set in line {self.lines[full]}."
                )
            self.lines[full] = line
            value = self._value(loader, value_node, full)
            if value is not None:
                built[key] = value
        return built
