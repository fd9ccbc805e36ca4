"""What a person meets on the screen: colours, the width of the terminal, Ctrl-C at a question, and what was done by name."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.helpers.agent import Agent
from tests.helpers.changing import change_of
from tests.helpers.doors import House
from tests.helpers.reviewer import with_settings
from tests.helpers.terminal import answered, interrupted, output_of
from tests.helpers.trees import plant

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Give a house whose server ends with the test, and whose reviews answer at once."""
    made = House(tmp_path)
    with_settings(made.state, {"review": {"wait_seconds": 0.2}})
    yield made
    made.run("stop")
    made.end()


@pytest.fixture
def desk(house: House) -> Iterator[Agent]:
    """Give a client that calls itself desk."""
    with Agent([house.root], house.state, name="desk", version="1.2") as agent:
        yield agent


def screen(state: Path, *words: str) -> str:
    return output_of(state, *words).decode().replace("\r\n", "\n")


@pytest.mark.req("FS-38.e")
def test_colours_are_for_terminals_alone_and_not_where_the_person_wants_none(
    house: House, desk: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    plant(house.root, {"a.txt": "a\n"})
    desk.call("write_file", path="a.txt", content="b\n").ok()
    desk.call("propose_and_review", path="a.txt", old_string="OVERWRITE_FILE", new_string="c\n").ok()
    commands = (("changes",), ("changes", "diff", "--since", "1h"), ("review", "show"), ("doctor",))
    for words in commands:
        assert "\x1b[" in screen(house.state, *words), words
        assert "\x1b[" not in house.run(*words).stdout, words
    monkeypatch.setenv("NO_COLOR", "1")
    for words in commands:
        assert "\x1b[" not in screen(house.state, *words), words


@pytest.mark.req("FS-38.e")
@pytest.mark.parametrize("columns", [40, 80])
def test_lists_and_both_sides_of_a_review_fit_the_terminal(
    house: House, desk: Agent, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("HOME", str(house.root.parent))
    folder = f"{house.root.name}/src"
    plant(house.root, {"src": {"a.txt": "one\n"}})
    change = change_of(desk.call("write_file", path="src/a.txt", content="two\n"))
    desk.call(
        "propose_and_review", path="src/a.txt", old_string="two", new_string="three, which is a good deal longer"
    ).ok()
    listed = click.unstyle(screen(house.state, "changes")).splitlines()
    if columns == 80:
        assert listed == [f"{change[:8]}  just now  desk 1.2  write     ~/{folder}/a.txt  (4 B)"]
    else:
        assert listed == [f"{change[:8]}  just now  desk 1.2  write", f"          ~/{folder}/a.txt  (4 B)"]
    for words in (("changes",), ("review",), ("review", "show", "--side-by-side"), ("undo", "--dry-run")):
        lines = click.unstyle(screen(house.state, *words)).splitlines()
        assert max(len(line) for line in lines if "holdfast review" not in line) <= columns, (words, lines)


@pytest.mark.req("FS-38.e")
def test_a_question_that_is_left_changes_nothing_and_what_is_undone_without_one_is_named(
    house: House, desk: Agent
) -> None:
    change = change_of(desk.call("write_file", path="a.txt", content="b\n"))
    status, _output = answered(house.state, b"\x04", "undo")
    assert (status, (house.root / "a.txt").read_text()) == (130, "b\n")
    assert f"{change[:8]}  write {house.root}/a.txt" in house.run("undo", "--yes").stdout


@pytest.mark.req("FS-38.e")
@pytest.mark.parametrize("words", [("status", "--watch"), ("calls", "--follow")])
def test_what_goes_on_until_ctrl_c_ends_there_without_a_word(house: House, desk: Agent, words: tuple[str, ...]) -> None:
    desk.call("list_directory", path=".").ok()
    status, seen = interrupted(house.state, rb"list_directory|calls", *words)
    assert (status, "Aborted" in seen) == (130, False), seen


@pytest.mark.req("FS-38.e")
def test_a_folder_that_is_not_there_is_named_where_no_change_matches(house: House) -> None:
    said = house.run("changes", str(house.root / "nowhere")).stdout
    assert said == f"No changes match, and there is no folder {house.root}/nowhere.\n"


@pytest.mark.req("SV-02.i")
def test_an_empty_list_of_stored_files_says_so_and_a_person_is_told_of_no_tools(house: House) -> None:
    listed = house.run("files", "ls", "-p", "notes")
    assert (listed.stdout, "`holdfast files projects` lists the projects" in listed.stderr) == ("", True)
    assert house.run("files", "ls", "-p", "notes", "--json").stderr == ""
    assert house.run("files", "cat", "-p", "notes", "/none").stderr == "holdfast: there is no such path: /none\n"


@pytest.mark.req("RV-02.b")
def test_after_a_decision_the_person_reads_what_comes_next(house: House, desk: Agent) -> None:
    for decision, words in (
        (
            "approve",
            r"Approved: .*a\.txt\nThe agent may make the change now; if it has left: holdfast review apply \w{8}",
        ),
        ("reject", r"Rejected: .*a\.txt\nNothing was changed\."),
        ("revise", r"Sent back: .*a\.txt\nThe agent gets your message with its next call\."),
    ):
        desk.call("propose_and_review", path="a.txt", old_string="OVERWRITE_FILE", new_string=f"{decision}\n").ok()
        waiting = house.run("review").stdout
        review = re.findall(r"^(\w{8})  waits for you", waiting, re.MULTILINE)[0]
        assert f"To look at one: holdfast review show {review}" in waiting
        if decision == "approve":
            _status, seen = answered(house.state, b"y\n", "review", "approve", review)
            assert b"Approve this change?" in seen
            continue
        said = house.run("review", decision, review, "-m", "no").stdout
        assert re.fullmatch(words + r"\n", said), said


@pytest.mark.req("SV-21.c")
def test_a_settings_file_of_another_name_is_told(house: House) -> None:
    (house.state / "settings.yml").rename(house.state / "settings.yaml")
    ran = house.run("config", "check")
    assert f"Its place: {house.state}/settings.yml" in ran.stdout
    assert f"{house.state}/settings.yaml is not read; call it settings.yml." in ran.stderr
    assert "settings.yaml is not read" in house.run("doctor").stdout
