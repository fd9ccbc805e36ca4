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
class Step:
    """One call to make."""

    id: str
    tool: str
    arguments: Mapping[str, Any]
    after: Sequence[str] = field(default=())


def wait_list(steps: Sequence[Step]) -> dict[str, frozenset[str]]:
    """Return the steps that each step waits for. InvalidArgument names the step that makes no sense."""
    ids = [step.id for step in steps]
    for number, name in enumerate(ids):
        if name in ids[:number]:
            raise InvalidArgument(f"step {name!r}: two steps have this id")
    sources = {step.id: list(_sources(step)) for step in steps}
    if sum(map(len, sources.values())) > MAX_REFERENCES:
        raise InvalidArgument(f"a pipe has at most {MAX_REFERENCES} references")
    waits = {step.id: frozenset((*step.after, *sources[step.id])) for step in steps}
    for name, awaited in waits.items():
        for unknown in sorted(awaited - waits.keys()):
            raise InvalidArgument(f"step {name!r}: there is no step {unknown!r} to wait for")
    _refuse_circles(waits)
    return waits


def filled(step: Step, results: Mapping[str, Any], max_chars: int) -> dict[str, Any]:
    """Return the step's arguments with each reference replaced.

    InvalidArgument when one points at nothing, PayloadTooLarge when together they are more than one call may carry.
    """
    left = max_chars

    def taken(value: Any) -> Any:
        nonlocal left
        left -= _weight(value)
        if left < 0:
            raise PayloadTooLarge(f"step {step.id!r}: what it refers to is larger than {max_chars} characters in all")
        return value

    def value_of(node: Any) -> Any:
        if isinstance(node, list):
            return [value_of(item) for item in node]
        if not isinstance(node, Mapping):
            return node
        if FROM in node:
            return taken(_pointed(step.id, node[FROM], node.get(PATH, ""), results[node[FROM]]))
        return {key: value_of(item) for key, item in node.items()}

    return {key: value_of(item) for key, item in step.arguments.items()}


def references(step: Step) -> set[str]:
    """Return the steps whose results this one uses."""
    return set(_sources(step))


def _sources(step: Step) -> Iterator[str]:
    pending: list[Any] = list(step.arguments.values())
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending.extend(node)
        elif isinstance(node, Mapping) and FROM in node:
            yield _checked(step.id, node)
        elif isinstance(node, Mapping):
            pending.extend(node.values())


def _checked(name: str, node: Mapping[str, Any]) -> str:
    source, path = node[FROM], node.get(PATH, "")
    if not isinstance(source, str) or not isinstance(path, str) or node.keys() - {FROM, PATH}:
        raise InvalidArgument(f'step {name!r}: a reference is {{"$from": step id, "path": JSON pointer}} and no more')
    if not _POINTER.fullmatch(path):
        raise InvalidArgument(f"step {name!r}: a JSON pointer is empty or starts with '/': {path!r:.100}")
    return source


def _refuse_circles(waits: Mapping[str, frozenset[str]]) -> None:
    left = dict(waits)
    while left:
        free = [name for name, sources in left.items() if not sources & left.keys()]
        if not free:
            circle = _circle(left)
            raise InvalidArgument(f"step {circle[0]!r}: it waits for itself: {' -> '.join(circle)}")
        for name in free:
            del left[name]


def _circle(left: Mapping[str, frozenset[str]]) -> list[str]:
    """Return one circle among steps that all wait for another of them, its first step again at its end."""
    seen: list[str] = []
    name = min(left)
    while name not in seen:
        seen.append(name)
        name = min(left[name] & left.keys())
    return [*seen[seen.index(name) :], name]


def _weight(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(len(key) + _weight(item) for key, item in value.items())
    return sum(map(_weight, value)) if isinstance(value, list) else 1


def _pointed(name: str, source: str, path: str, result: Any) -> Any:
    found = result
    for token in path.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and key in found:
            found = found[key]
        elif isinstance(found, list) and _INDEX.fullmatch(key) and int(key) < len(found):
            found = found[int(key)]
        else:
            raise InvalidArgument(f"step {name!r}: the result of step {source!r} has nothing at {path!r:.100}")
    return found
