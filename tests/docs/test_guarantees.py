"""GUARANTEES.md has every row of the requirement map, and each test file that a line names proves what the line says."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.requirements import ROW, Marked, marked_tests, read_map

TOP = Path(__file__).parents[2]
PAGE = TOP / "GUARANTEES.md"
MAP = TOP / "tests" / "acceptance" / "requirements.toml"
LINE = re.compile(r"^\| (?P<promise>[^|]+) \| (?P<exceptions>[^|]*)\| (?P<proof>[^|]+) \|$")
FILE = re.compile(r"\]\(([^)]+\.py)\)")


def rows_by_file(tests: list[Marked], top: Path) -> dict[str, set[str]]:
    """Return the rows that the tests of each file are marked with."""
    rows: dict[str, set[str]] = {}
    for test in tests:
        rows.setdefault(test.path.relative_to(top).as_posix(), set()).update(
            name.partition(".")[0] for name in test.ids
        )
    return rows


def problems(page: str, map_rows: set[str], proven: dict[str, set[str]]) -> Iterator[str]:
    """Return what is wrong: a row that is missing, or unknown, or not proven by a file of its line, or a file that proves nothing there."""
    on_page: set[str] = set()
    for line in page.splitlines():
        match = LINE.match(line)
        if match is None or not ROW.search(match["proof"]):
            continue
        rows, files = set(ROW.findall(match["proof"])), FILE.findall(match["proof"])
        on_page |= rows
        yield from (f"{row} is not in the map" for row in sorted(rows - map_rows))
        yield from (
            f"{row} is proven by no file of its line"
            for row in sorted(rows & map_rows)
            if not any(row in proven.get(file, ()) for file in files)
        )
        yield from (f"{file} proves nothing of its line" for file in files if not rows & proven.get(file, set()))
    yield from (f"{row} is missing" for row in sorted(map_rows - on_page))


def test_every_promise_stands_on_the_page_with_a_test_that_proves_it() -> None:
    proven = rows_by_file(marked_tests(TOP / "tests"), TOP)
    rows = {
        name for name in read_map(MAP).parts if "." not in name and any(name in marked for marked in proven.values())
    }

    assert list(problems(PAGE.read_text(), rows, proven)) == []


@pytest.mark.req("RV-10.c")
def test_the_page_says_that_a_program_with_a_shell_is_outside_of_the_promise() -> None:
    section = PAGE.read_text().partition("## Outside of every promise")[2].partition("\n## ")[0]
    approval = next(line for line in PAGE.read_text().splitlines() if "cannot approve" in line and "RV-10" in line)

    assert "A program of the same user with a shell" in section
    assert "#outside-of-every-promise" in approval


PROVEN = {"tests/a.py": {"FS-01"}, "tests/b.py": {"FS-02"}}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("| It holds | | FS-01 [a](tests/a.py) |", []),
        ("| It holds | or not | FS-01 [a](tests/a.py), [b](tests/b.py) |", ["tests/b.py proves nothing of its line"]),
        ("| It holds | | FS-01 [b](tests/gone.py) |", ["FS-01 is proven by no file of its line", "tests/gone.py proves nothing of its line"]),
        ("| It holds | | FS-01 FS-09 [a](tests/a.py) |", ["FS-09 is not in the map"]),
        ("It holds.", ["FS-01 is missing"]),
    ],
)  # fmt: skip
def test_a_promise_without_proof_is_seen(line: str, expected: list[str]) -> None:
    assert list(problems(line, {"FS-01"}, PROVEN)) == expected
