"""The documentation says what the code does: pages are generated, and everything a user meets stands in one."""

import json
import re
from pathlib import Path

import pytest
import yaml

from holdfast.auth.context import CallerKind
from holdfast.cli.main import cli
from holdfast.config.describe import setting_rows
from holdfast.config.environment import VARIABLES
from holdfast.config.load import parse
from holdfast.errors import HoldfastError
from holdfast.tools.table import TOOLS
from scripts.document import commands, pages

TOP = Path(__file__).parents[2]
DOCUMENTS = sorted([*TOP.glob("*.md"), *(TOP / "docs").rglob("*.md")])
PROSE = "\n".join(path.read_text() for path in DOCUMENTS)


@pytest.mark.req("SV-53")
def test_every_generated_page_is_up_to_date() -> None:
    stale = [
        path.relative_to(TOP).as_posix()
        for path, text in pages().items()
        if not path.exists() or path.read_text() != text
    ]

    assert stale == [], "run `make docs`"


def test_every_tool_and_parameter_is_documented() -> None:
    page = (TOP / "docs" / "reference" / "tools.md").read_text()

    for tool in TOOLS:
        assert f"## {tool.name}\n" in page
        for name, schema in tool.input_schema.get("properties", {}).items():
            assert schema.get("description"), f"{tool.name}.{name} has no description"


def test_the_readme_names_every_tool_that_agents_are_offered() -> None:
    readme = (TOP / "README.md").read_text()
    offered = [tool.name for tool in TOOLS if tool.listed and tool.audience is CallerKind.AGENT]

    assert len(offered) == 40
    assert [name for name in offered if f"`{name}`" not in readme] == []


def test_the_readme_names_no_tool_that_is_not_there() -> None:
    known = {tool.name for tool in TOOLS}
    table = re.findall(
        r"^\| (?:read|look around|find|change|undo|ask you first|sort a messy folder) \| (.*) \|$",
        (TOP / "README.md").read_text(),
        re.MULTILINE,
    )

    assert len(table) == 7
    assert {name for row in table for name in re.findall(r"`(\w+)`", row)} - known == set()


def test_every_setting_and_variable_is_documented() -> None:
    page = (TOP / "docs" / "reference" / "settings.md").read_text()

    assert [row.name for row in setting_rows() if f"| `{row.name}` |" not in page] == []
    assert [name for name in VARIABLES if f"| `{name}` |" not in page] == []


def test_every_error_code_is_documented() -> None:
    page = (TOP / "docs" / "reference" / "errors.md").read_text()
    kinds = [HoldfastError]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())

    assert [kind.code for kind in kinds if f"| `{kind.code}` |" not in page] == []


def test_every_command_is_documented_and_says_what_it_is_for() -> None:
    page = (TOP / "docs" / "reference" / "commands.md").read_text()

    for path, command, _ in commands(cli):
        assert f"## {' '.join(path)}\n" in page
        assert command.help, f"{' '.join(path)} has no help"


def test_every_command_that_a_page_shows_exists() -> None:
    known = {path for path, _, _ in commands(cli)}
    command_names = re.findall(r"(?:^|`)holdfast ([a-z]+)(?: ([a-z]+))?", PROSE, re.MULTILINE)
    groups = {path[1] for path in known if len(path) > 2}

    for first, second in command_names:
        assert ("holdfast", first) in known, first
        if first in groups and second:
            assert ("holdfast", first, second) in known, f"{first} {second}"


def test_every_make_target_that_a_page_shows_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (TOP / "Makefile").read_text(), re.MULTILINE))

    assert set(re.findall(r"(?:^|`)make ([a-z]+)", PROSE, re.MULTILINE)) - targets == set()


def test_the_readme_starts_with_the_two_commands() -> None:
    first = re.search(r"```sh\n(.*?)```", (TOP / "README.md").read_text(), re.DOTALL)

    assert first
    assert first[1].split("\n") == ["make run", "make test", ""]
    assert first.start() < 200


def test_every_setting_that_a_page_shows_exists() -> None:
    known = {re.sub(r"<name>", "*", row.name) for row in setting_rows()}
    known |= {name.rsplit(".", depth)[0] for name in known for depth in range(1, name.count(".") + 1)}
    setting_names = set(re.findall(r"\bsettings(?:\.[a-z_0-9]+)+", PROSE)) - {
        "settings.yml",
        "settings.py",
        "settings.md",
        "settings.json",
    }

    unknown = {
        name
        for name in setting_names
        if name not in known and not re.match(r"settings\.mcp\.(tools|groups|files\.security\.encryption_keks)\.", name)
    }
    assert unknown == set()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(TOP).as_posix())
def test_examples_of_settings_and_json_are_sound(path: Path) -> None:
    text = path.read_text()

    for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL):
        json.loads(block)
    for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL):
        assert yaml.safe_load(block)
        parse(block, path.name)
    for block in re.findall(r"```python[^\n]*\n(.*?)```", text, re.DOTALL):
        compile(block, path.name, "exec")
