"""The how-to pages work: their commands are run in order, and their settings, configurations and arguments are valid."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import pytest

from holdfast.cli.main import cli
from holdfast.config.load import parse
from holdfast.tools.table import TOOLS
from tests.docs.how_to import HOW_TO, Reader, blocks_of, commands_in
from tests.helpers.agent import Agent
from tests.helpers.organising import HOUSE
from tests.helpers.trees import plant

TOP = Path(__file__).parents[2]
Value = Callable[[Reader], str]


def prepare_nothing(_reader: Reader) -> None:
    """Leave the home folder as it is."""


def prepare_downloads(reader: Reader) -> None:
    plant(reader.home, {"Downloads": {**HOUSE, "notes.txt": "zz"}})


def prepare_proposal(reader: Reader) -> None:
    """Have an agent propose a change, delete a folder under a rule of review, and not wait for the person."""
    plant(
        reader.home,
        {
            "project": {
                "notes.md": "# Notes\nteh plan\n",
                "old": {"drafts": {"plan.md": "plan\n"}, "todo.md": "todo\n"},
            }
        },
    )
    reader.state().mkdir(parents=True, mode=0o700)
    rules = "policy: {rules: [{access: review, glob: old}]}"
    (reader.state() / "settings.yml").write_text(f"settings: {{review: {{wait_seconds: 0}}, {rules}}}\n")
    with Agent([reader.home / "project"], reader.state()) as agent:
        agent.call("delete_file", path="old", recursive=True).ok()
        agent.call("propose_and_review", path="notes.md", old_string="teh", new_string="the").ok()


def open_review(reader: Reader, kind: str) -> str:
    """Return the id of the open review of that kind."""
    reviews = reader.json("holdfast review list")["reviews"]
    return next(str(review["review_id"]) for review in reviews if review["kind"] == kind)


def prepare_contracts(reader: Reader) -> None:
    lease = "The lease ends on the last day of March.\n"
    plant(reader.home, {"contracts": {"flat.txt": lease}, "src": {"a.py": "# retry after timeout\n"}})


def prepare_store(reader: Reader) -> None:
    plant(reader.home, {"plan.md": "The release date is the first of May.\n"})
    reader.state().mkdir(parents=True, mode=0o700)
    (reader.state() / "settings.yml").write_text("settings: {auth: {mode: listed}, server: {port: 0}}\n")


def prepare_project_files(reader: Reader) -> None:
    """Have a project of the store."""
    prepare_store(reader)
    reader.run("holdfast files put -p notes /plan.md ~/plan.md")


def prepare_folders(reader: Reader) -> None:
    plant(reader.home, {"notes": {}, "work": {}})


def prepare_notes(reader: Reader) -> None:
    plant(reader.home, {"project": {"notes.md": "# Notes\n"}})


def prepare_console(reader: Reader) -> None:
    """Have a project, and a browser that only says what it was to open."""
    prepare_notes(reader)
    reader.environment["BROWSER"] = "echo"


def prepare_changes(reader: Reader) -> None:
    """Have an agent change some files."""
    plant(reader.home, {"project": {f"{name}.md": "old\n" for name in "abcd"}})
    with Agent([reader.home / "project"], reader.state(), name="claude-code", version="2.1") as agent:
        for name in "abcd":
            agent.call("write_file", path=f"{name}.md", content="by the agent\n").ok()


def prepare_backups(reader: Reader) -> None:
    """Have changes of an agent, and a folder for backups."""
    prepare_changes(reader)
    plant(reader.home, {"backups": {}})


def prepare_server(reader: Reader) -> None:
    reader.start("holdfast serve project --port 0")


def newest_change(reader: Reader) -> str:
    listed = reader.json("holdfast changes --kind write")["changes"]
    return next(str(change["change_id"]) for change in listed if change["status"] == "EXECUTED")


def newest_plan(reader: Reader) -> str:
    return str(reader.json("holdfast organise list")["plans"][0]["plan_id"])


def scanned_again(reader: Reader) -> str:
    reader.run("holdfast organise scan ~/Downloads")
    return "holdfast organise move notes.txt Work"


def server_url(reader: Reader) -> str:
    reader.start("holdfast serve project --port 0")
    return str(reader.json("holdfast status")["url"])


def server_address(reader: Reader) -> str:
    return str(reader.json("holdfast status")["url"]).replace("http", "ws")


def agent_token(reader: Reader) -> str:
    return (reader.state() / "agent.token").read_text().strip()


def new_key(reader: Reader) -> str:
    return str(reader.json("holdfast keys create")["key"])


@dataclass(frozen=True)
class Page:
    """What a page takes for granted, what its sample words stand for, and the tools that its JSON blocks are for.

    `shows` is what its commands must show. `left_out` gives the reason for each language whose blocks are not checked.
    """

    prepare: Callable[[Reader], None] = prepare_nothing
    words: Mapping[str, Value] = field(default_factory=dict)
    tool: str = ""
    shows: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)


def port(_reader: Reader) -> str:
    return "--port 0"


PAGES = {
    "backup": Page(prepare_backups, shows=("is whole", "Restored to", "claude-code")),
    "calls": Page(prepare_changes, shows=("write_file", "claude-code")),
    "care-of-data": Page(
        prepare_project_files,
        words={"3f9a0c12b7de": lambda reader: str(reader.json("holdfast keys create")["id"])},
        shows=("1 created", "holds a new key", "is shown only this once"),
    ),
    "connect": Page(prepare_folders, shows=("claude-desktop", "Claude Code starts Holdfast", '+        "--review"')),
    "containers": Page(),
    "console": Page(
        prepare_console,
        shows=("/open#", '"parameters"', "# Workspace", "notes.md", "structuredContent", "0 changes."),
    ),
    "http": Page(words={"--port 8124": port}),
    "index-workers": Page(words={"postgresql://…": lambda reader: reader.database}, shows=("everything is indexed",)),
    "keys": Page(
        words={"3f9a0c12b7de": lambda reader: str(reader.json("holdfast keys list")[0]["id"])},
        shows=("build farm",),
    ),
    "observe": Page(
        prepare_server,
        words={"holdfast status --watch": lambda _reader: "timeout -s INT 8 holdfast status --watch || true"},
        shows=("calls", "in the queue", "of memory"),
    ),
    "organise": Page(
        prepare_downloads,
        words={"holdfast organise move notes.txt Work": scanned_again, "3f2a": newest_plan},
        shows=("EXECUTED", "UNDONE", "Ideas/"),
    ),
    "pipe": Page(tool="mcp_pipe"),
    "policy": Page(prepare_notes, shows=("no rules", "May an agent write it? Yes.")),
    "remote": Page(),
    "review": Page(
        prepare_proposal,
        words={
            "3f2a": lambda reader: open_review(reader, "edit"),
            "7c1d": lambda reader: open_review(reader, "delete"),
        },
        shows=("+the plan", "old: directory (2 files, 10 B)"),
    ),
    "run-as-service": Page(shows=("No server is running",)),
    "search-folders": Page(
        prepare_contracts, tool="search_folders", shows=("last day of March", "retry after timeout")
    ),
    "search": Page(tool="file_search", left_out={"sql": "pg_textsearch is an extension that no package index has"}),
    "stdio": Page(),
    "store": Page(
        prepare_store,
        words={
            "postgresql://holdfast@db.example.org/holdfast": lambda reader: reader.database,
            "hf_…": new_key,
            "https://files.example.org": server_url,
        },
        shows=("The release date is the first of May.",),
    ),
    "undo": Page(
        prepare_changes,
        words={"3f2a9c1d": newest_change},
        shows=("claude-code 2.1", "+by the agent", "gets back its earlier content", "1 change redone."),
    ),
    "websocket": Page(
        words={"--port 8124": port, "ws://127.0.0.1:8124": server_address, "TOKEN": agent_token},
        shows=("read_text_file",),
    ),
}


def test_every_page_is_followed() -> None:
    assert {path.stem for path in HOW_TO.glob("*.md")} == set(PAGES), "add a new page to PAGES"


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_page_work(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    page = PAGES[name]
    if not any(command for block in blocks_of(name) for command in commands_in(block)):
        return
    needs_database = any("postgresql" in word for word in page.words)
    database = request.getfixturevalue("postgres_url") if needs_database else ""
    with Reader(tmp_path / "home", database) as reader:
        page.prepare(reader)
        output = reader.follow(name, page.words)
    for text in page.shows:
        assert text in output


@pytest.mark.parametrize("name", PAGES)
def test_the_settings_and_arguments_of_a_page_are_valid(name: str) -> None:
    for block in blocks_of(name):
        if block.language == "yaml":
            parse(block.text, f"{name}.md")
        elif block.language == "json":
            check_json(json.loads(block.text), PAGES[name].tool)
        else:
            checked = block.language in ("sh", "console", "", "python", "text")
            assert checked or block.language in PAGES[name].left_out, f"{name}.md has a block of {block.language}"


def check_json(value: dict[str, Any], tool: str) -> None:
    """See that a configuration starts a command that there is, and that other JSON is arguments of the page's tool."""
    if "mcpServers" not in value:
        entry = TOOLS.get(tool)
        assert entry is not None, f"which tool takes {value}?"
        entry.arguments.model_validate(value)
        return
    for server in value["mcpServers"].values():
        if "command" in server:
            assert list(use_problems([server["command"], *server["args"]])) == []


INLINE = re.compile(r"`(?:[A-Z_]+=\S+ )?(holdfast [^`\n]+)`")


@pytest.mark.parametrize("path", sorted((TOP / "docs").rglob("*.md")), ids=lambda path: path.name)
def test_commands_named_in_a_sentence_exist(path: Path) -> None:
    problems = [problem for use in INLINE.findall(path.read_text()) for problem in use_problems(use.split())]
    assert problems == []


def use_problems(words: list[str]) -> list[str]:
    """Return what is wrong with the use of a command: a name or an option that there is not."""
    command: click.Command = cli
    context = click.Context(cli, info_name="holdfast")
    rest = words[1:]
    while isinstance(command, click.Group) and rest and rest[0].isalpha() and rest[0].islower():
        below = command.get_command(context, rest[0])
        if below is None:
            return [f"{' '.join(words)}: there is no {rest[0]}"]
        command, rest = below, rest[1:]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    options = [word.partition("=")[0].rstrip(",.;:)]") for word in rest if word.lstrip("[(").startswith("-")]
    return [
        f"{' '.join(words)}: there is no {option}"
        for option in options
        if option.lstrip("[(") not in {*known, "--help", "-h"}
    ]


def test_a_command_that_does_not_exist_is_seen() -> None:
    assert use_problems(["holdfast", "tidy", "x"]) == ["holdfast tidy x: there is no tidy"]
    assert use_problems(["holdfast", "organise", "scan", "--fast"]) == [
        "holdfast organise scan --fast: there is no --fast"
    ]
    assert use_problems(["holdfast", "organise", "scan", "DIR", "--json"]) == []
