"""The requirement map against the tests: which promise has no test, and which test names no promise."""

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROW = re.compile(r"\b(?:FS|RV|OR|ST|SE|SV)-\d\d\b")


@dataclass(frozen=True)
class Map:
    """Every id with the part it lands with. A row with clauses is proven by its clauses."""

    parts: dict[str, str]
    landed: frozenset[str]
    with_clauses: frozenset[str]

    @property
    def due(self) -> set[str]:
        """Return what needs a test: landed clauses, and landed rows that have none."""
        return {name for name, part in self.parts.items() if part in self.landed} - self.with_clauses


@dataclass(frozen=True)
class Marked:
    """One test and the ids it names."""

    path: Path
    name: str
    ids: tuple[str, ...]


def read_map(path: Path) -> Map:
    """Read the map; ValueError when a part is not one of its parts."""
    document = tomllib.loads(path.read_text())
    parts: dict[str, str] = {}
    for row, entry in document["rows"].items():
        parts[row] = entry["part"]
        for clause, text in entry.get("clauses", {}).items():
            parts[f"{row}.{clause}"] = text.get("part", entry["part"])
    unknown = set(parts.values()) - set(document["parts"])
    if unknown:
        raise ValueError(f"unknown parts: {sorted(unknown)}")
    with_clauses = frozenset(row for row, entry in document["rows"].items() if entry.get("clauses"))
    return Map(parts, frozenset(document["landed"]), with_clauses)


def problems(requirements: Map, tests: list[Marked]) -> list[str]:
    """Return what is wrong between the map and the tests, one line each."""
    used_ids = {name for test in tests for name in test.ids}
    lines = [
        f"{test.path.name}::{test.name} names no requirement" for test in tests if _must_name(test) and not test.ids
    ]
    lines += [
        f"{test.path.name}::{test.name} names {name!r}, which is not in the map"
        for test in tests
        for name in test.ids
        if name not in requirements.parts
    ]
    return lines + [f"{name} has landed and no test names it" for name in sorted(requirements.due - used_ids)]


def spec_problems(requirements: Map, spec: Path) -> list[str]:
    """Return the rows that only the map or only the specification has."""
    rows = {name for name in requirements.parts if "." not in name}
    specified = {name for file in spec.glob("*.md") for name in ROW.findall(file.read_text())}
    lines = [f"{name} is specified and missing in the map" for name in sorted(specified - rows)]
    return lines + [f"{name} is in the map and not specified" for name in sorted(rows - specified)]


def marked_tests(folder: Path) -> list[Marked]:
    """Return every test beneath a folder with the ids of its own, its class's and its module's marks."""
    return [
        test
        for path in sorted(folder.rglob("test_*.py"))
        if "node_modules" not in path.parts
        for test in _tests_of(path, ast.parse(path.read_text()))
    ]


def _must_name(test: Marked) -> bool:
    return "acceptance" in test.path.parts


def _tests_of(path: Path, module: ast.Module) -> Iterator[Marked]:
    shared = tuple(
        name
        for node in module.body
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets)
        for name in _ids(node.value)
    )
    yield from _in_body(path, module.body, shared)


def _in_body(path: Path, body: list[ast.stmt], shared: tuple[str, ...]) -> Iterator[Marked]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield Marked(path, node.name, (*shared, *(name for mark in node.decorator_list for name in _ids(mark))))
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            own = tuple(name for mark in node.decorator_list for name in _ids(mark))
            yield from _in_body(path, node.body, (*shared, *own))


def _ids(expression: ast.AST) -> Iterator[str]:
    for node in ast.walk(expression):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "req":
            for argument in node.args:
                yield str(argument.value) if isinstance(argument, ast.Constant) else ast.unparse(argument)
