"""No package is pinned, or may be resolved, older than the table of minimum safe versions says."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

TOP = Path(__file__).parents[2]
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", re.MULTILINE)
Table = dict[str, dict[str, str]]


def table() -> Table:
    document: dict[str, Table] = tomllib.loads((TOP / "requirements" / "minimum-safe.toml").read_text())
    return document["packages"]


def pin_problems(safe: Table, requirements: str) -> Iterator[str]:
    """Return every pin that is older than the oldest safe version, or not below the bound above."""
    for name, version in PIN.findall(requirements):
        entry = safe.get(name.lower())
        if entry and Version(version) < Version(entry["version"]):
            yield f"{name} {version} is older than {entry['version']}: {entry['why']}"
        if entry and "below" in entry and Version(version) >= Version(entry["below"]):
            yield f"{name} {version} is not below {entry['below']}: {entry['why']}"


def bound_problems(safe: Table, dependencies: list[str]) -> Iterator[str]:
    """Return every direct dependency that pip might resolve to a version that is older than the oldest safe one."""
    for text in dependencies:
        requirement = Requirement(text)
        entry = safe.get(requirement.name.lower())
        lowest = [part.version for part in requirement.specifier if part.operator in {">=", "=="}]
        if entry and (not lowest or max(map(Version, lowest)) < Version(entry["version"])):
            yield f"{text} allows less than {entry['version']}: {entry['why']}"


def project() -> dict[str, Any]:
    return tomllib.loads((TOP / "pyproject.toml").read_text())


@pytest.mark.req("SV-52")
@pytest.mark.parametrize("level", ["run", "web", "setup", "dev"])
def test_every_pin_is_a_safe_version(level: str) -> None:
    assert list(pin_problems(table(), (TOP / "requirements" / f"{level}.txt").read_text())) == []


def test_no_bound_allows_a_version_that_is_not_safe() -> None:
    metadata = project()["project"]
    dependencies = [
        *metadata["dependencies"],
        *(text for texts in metadata["optional-dependencies"].values() for text in texts),
    ]

    assert list(bound_problems(table(), dependencies)) == []


def test_every_row_is_about_a_package_that_is_used() -> None:
    pinned = {name.lower() for name, _ in PIN.findall((TOP / "requirements" / "dev.txt").read_text())}

    assert [name for name in table() if name not in pinned] == []


def test_an_unsafe_version_is_seen() -> None:
    safe = {"lib": {"version": "2.1", "below": "3", "why": "a fault"}}

    assert list(pin_problems(safe, "lib==2.0 \\\nlib==3.1 ; python_version > '3' \\\nlib==2.1 \\\n")) == [
        "lib 2.0 is older than 2.1: a fault",
        "lib 3.1 is not below 3: a fault",
    ]
    assert list(bound_problems(safe, ["lib>=2.0,<3", "lib", "lib[x]>=2.1", "other"])) == [
        "lib>=2.0,<3 allows less than 2.1: a fault",
        "lib allows less than 2.1: a fault",
    ]
