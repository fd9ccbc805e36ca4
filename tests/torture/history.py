"""What clients did and saw: a line before each call and a line after it, in a file that outlives the client.

A call whose second line is missing, or says "unknown", may or may not have happened, at any time after its first line.
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from tests.torture.model import MUTATIONS, Answer

UNKNOWN = "unknown"
NOT_MADE = "none"
BUSY = "busy"
Place = tuple[int, str]
"""A tenant by its number, and a project."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One call. `answer` is None when it is not known whether the call happened; `end` is then infinite."""

    id: str
    place: Place
    tool: str
    args: dict[str, Any]
    start: int
    end: float
    answer: Answer | None

    @property
    def mutates(self) -> bool:
        """Return whether the call may change the project."""
        return self.tool in MUTATIONS


@dataclass(frozen=True, slots=True)
class Fault:
    """An answer that no call should have got, whatever was killed."""

    id: str
    what: str


class Journal:
    """Writes one client's lines; each is with the kernel when the method returns."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, *line: Any) -> None:
        """Add a line."""
        os.write(self._fd, json.dumps(line, separators=(",", ":")).encode() + b"\n")


@dataclass
class History:
    """Every call of a run that has a meaning, by project; and what was counted on the way."""

    by_place: dict[Place, list[Operation]]
    counts: dict[str, int]
    faults: list[Fault]


def read_history(folder: Path) -> History:
    """Read the lines of every client."""
    by_place: defaultdict[Place, list[Operation]] = defaultdict(list)
    counts: defaultdict[str, int] = defaultdict(int)
    faults: list[Fault] = []
    for path in sorted(folder.glob("*.log")):
        for start_line, end_line in _pairs(_lines(path)):
            _, number, start, tenant, project, tool, args = start_line
            outcome, value = (end_line[3], end_line[4]) if end_line else (UNKNOWN, "killed")
            counts["calls"] += outcome != NOT_MADE
            if outcome in (UNKNOWN, BUSY, NOT_MADE):
                counts[outcome] += 1
            if outcome == BUSY and value is not None:
                faults.append(Fault(number, value))
            if outcome == UNKNOWN and str(value).startswith("fault"):
                faults.append(Fault(number, value))
            if outcome in (BUSY, NOT_MADE) or (outcome == UNKNOWN and tool not in MUTATIONS):
                continue
            answer = None if outcome == UNKNOWN else _frozen([outcome, *value])
            end = inf if answer is None or end_line is None else end_line[2]
            by_place[tenant, project].append(Operation(number, (tenant, project), tool, args, start, end, answer))
    return History(dict(by_place), dict(counts), faults)


def _lines(path: Path) -> Iterator[list[Any]]:
    for line in path.read_text().splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            return


def _pairs(lines: Iterable[list[Any]]) -> Iterator[tuple[list[Any], list[Any] | None]]:
    open_lines: dict[str, list[Any]] = {}
    for line in lines:
        if line[0] == "i":
            open_lines[line[1]] = line
        else:
            yield open_lines.pop(line[1]), line
    for line in open_lines.values():
        yield line, None


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
