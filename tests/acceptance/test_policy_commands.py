"""`holdfast policy`: the person sees the rules and tries them, and a rule that cannot be meant is refused at once."""

import json
from pathlib import Path

import pytest

from tests.helpers.doors import House

RULES = """settings:
  policy:
    rules:
      - {access: deny, glob: .env}
      - {access: review, root: ROOT, glob: src/**}
      - {access: read-only, client: claude-*}
      - {access: allow, glob: src/**}
"""


@pytest.fixture
def house(tmp_path: Path) -> House:
    """Give a state folder with four rules."""
    house = House(tmp_path)
    house.settings(RULES.replace("ROOT", str(house.root)))
    return house


@pytest.mark.req("RV-13.g")
def test_show_lists_the_rules_in_order_and_where_they_come_from(house: House) -> None:
    shown = house.run("policy", "show")
    assert shown.returncode == 0, shown.stderr
    first, *lines = shown.stdout.splitlines()
    assert str(house.state / "settings.yml") in first
    assert [line.split()[:2] for line in lines] == [
        ["1", "deny"],
        ["2", "review"],
        ["3", "read-only"],
        ["4", "allow"],
        ["-", "deny"],
    ]
    data = json.loads(house.run("policy", "show", "--json").stdout)
    assert data["rules"][1] == {
        "number": 2,
        "access": "review",
        "root": str(house.root),
        "glob": "src/**",
        "client": None,
        "source": "settings policy rule 2",
    }


@pytest.mark.req("RV-13.g", "RV-13.d")
@pytest.mark.parametrize(
    ("path", "options", "status", "rule"),
    [
        ("notes.md", [], 0, None),
        ("notes.md", ["--client", "claude-code"], 13, 3),
        ("notes.md", ["--client", "claude-code", "--for", "read"], 0, 3),
        ("src/a.py", [], 3, 2),
        ("src/a.py", ["--for", "read"], 0, 2),
        ("src/sub/.ENV", ["--for", "read"], 13, 1),
        ("link/a.py", [], 3, 2),
    ],
)
def test_a_path_is_tried_with_a_status_that_scripts_can_use(
    house: House, path: str, options: list[str], status: int, rule: int | None
) -> None:
    (house.root / "src").mkdir()
    (house.root / "link").symlink_to("src")
    done = house.run("policy", "test", str(house.root / path), "--root", str(house.root), *options, "--json")
    assert done.returncode == status, done.stdout
    assert json.loads(done.stdout)["rule"] == rule


@pytest.mark.req("RV-13.e")
@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{access: sometimes, glob: x}", "expected one of allow, review, read-only, deny"),
        ("{glob: x}", "access"),
        ("{access: deny, glob: '!x'}", "settings policy rule 1"),
        ("{access: deny, root: relative}", "absolute"),
        ("{access: deny, globs: x}", "did you mean"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused_before_anything_starts(tmp_path: Path, line: str, problem: str) -> None:
    house = House(tmp_path)
    house.settings(f"settings: {{policy: {{rules: [{line}]}}}}\n")
    for arguments in (["policy", "show"], ["config", "check"], ["stdio", "--in-process", str(house.root)]):
        done = house.run(*arguments)
        assert done.returncode == 2, done.stdout + done.stderr
        assert problem in done.stderr


@pytest.mark.req("RV-13.g")
def test_without_rules_nothing_is_bound(tmp_path: Path) -> None:
    house = House(tmp_path)
    assert "no rules" in house.run("policy", "show").stdout
    done = house.run("policy", "test", str(house.root / ".env"), "--root", str(house.root))
    assert done.returncode == 0
    assert "no rule matches" in done.stdout
