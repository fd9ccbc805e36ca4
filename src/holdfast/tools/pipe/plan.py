"""Pure: which steps of a pipe wait for which, and how a reference becomes the value it points to.

A reference is an object `{"$from": step_id, "path": JSON pointer}` anywhere in a step's arguments. Without `path` it
is the whole result of that step.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import InvalidArgument, PayloadTooLarge

FROM, PATH = "$from", "path"
MAX_REFERENCES = 1_000
_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)*")
_INDEX = re.compile(r"0|[1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class PipeStep:
    """One call to make."""

    id: str
    tool: str
    arguments: Mapping[str, Any]
    after: Sequence[str] = field(default=())


def find_dependencies(steps: Sequence[PipeStep]) -> dict[str, frozenset[str]]:
    """Return the steps that each step waits for. InvalidArgument names the step that makes no sense."""
    ids = [step.id for step in steps]
    for index, name in enumerate(ids):
        if name in ids[:index]:
            raise InvalidArgument(f"step {name!r}: two steps have this id")
    sources = {step.id: list(_references(step)) for step in steps}
    if sum(map(len, sources.values())) > MAX_REFERENCES:
        raise InvalidArgument(f"a pipe has at most {MAX_REFERENCES} references")
    waits = {step.id: frozenset((*step.after, *sources[step.id])) for step in steps}
    for name, awaited in waits.items():
        for unknown in sorted(awaited - waits.keys()):
            raise InvalidArgument(f"step {name!r}: there is no step {unknown!r} to wait for")
    _refuse_cycles(waits)
    return waits


def fill_references(step: PipeStep, results: Mapping[str, Any], max_chars: int) -> dict[str, Any]:
    """Return the step's arguments with each reference replaced.

    InvalidArgument when one points at nothing, PayloadTooLarge when together they are more than one call may carry.
    """
    left = max_chars

    def charge(value: Any) -> Any:
        nonlocal left
        left -= _count_chars(value)
        if left < 0:
            raise PayloadTooLarge(f"step {step.id!r}: what it refers to is larger than {max_chars} characters in all")
        return value

    def value_of(node: Any) -> Any:
        if isinstance(node, list):
            return [value_of(item) for item in node]
        if not isinstance(node, Mapping):
            return node
        if FROM in node:
            return charge(_follow_pointer(step.id, node[FROM], node.get(PATH, ""), results[node[FROM]]))
        return {key: value_of(item) for key, item in node.items()}

    return {key: value_of(item) for key, item in step.arguments.items()}


def referenced_steps(step: PipeStep) -> set[str]:
    """Return the steps whose results this one uses."""
    return set(_references(step))


def _references(step: PipeStep) -> Iterator[str]:
    pending: list[Any] = list(step.arguments.values())
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending.extend(node)
        elif isinstance(node, Mapping) and FROM in node:
            yield _check_reference(step.id, node)
        elif isinstance(node, Mapping):
            pending.extend(node.values())


def _check_reference(name: str, node: Mapping[str, Any]) -> str:
    source, path = node[FROM], node.get(PATH, "")
    if not isinstance(source, str) or not isinstance(path, str) or node.keys() - {FROM, PATH}:
        raise InvalidArgument(f'step {name!r}: a reference is {{"$from": step id, "path": JSON pointer}} and no more')
    if not _POINTER.fullmatch(path):
        raise InvalidArgument(f"step {name!r}: a JSON pointer is empty or starts with '/': {path!r:.100}")
    return source


def _refuse_cycles(waits: Mapping[str, frozenset[str]]) -> None:
    left = dict(waits)
    while left:
        free = [name for name, sources in left.items() if not sources & left.keys()]
        if not free:
            cycle = _find_cycle(left)
            raise InvalidArgument(f"step {cycle[0]!r}: dependency cycle: {' -> '.join(cycle)}")
        for name in free:
            del left[name]


def _find_cycle(left: Mapping[str, frozenset[str]]) -> list[str]:
    """Return one cycle among steps that all wait for another of them, its first step again at its end."""
    path: list[str] = []
    name = min(left)
    while name not in path:
        path.append(name)
        name = min(left[name] & left.keys())
    return [*path[path.index(name) :], name]


def _count_chars(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(len(key) + _count_chars(item) for key, item in value.items())
    return sum(map(_count_chars, value)) if isinstance(value, list) else 1


def _follow_pointer(name: str, source: str, path: str, result: Any) -> Any:
    value = result
    for token in path.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and _INDEX.fullmatch(key) and int(key) < len(value):
            value = value[int(key)]
        else:
            raise InvalidArgument(f"step {name!r}: the result of step {source!r} has nothing at {path!r:.100}")
    return value
