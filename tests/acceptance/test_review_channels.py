"""The ways to a person: an editor that saves, a client that asks; the first decision wins."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import stop_server
from tests.helpers.agent import LEGACY, MODERN, Agent
from tests.helpers.doors import is_alive, until
from tests.helpers.editor import FakeCode, fake_code
from tests.helpers.reviewer import TEXT, Host, Reviewer, reviewing, with_settings

pytestmark = pytest.mark.timeout(120)

WANTED = TEXT.replace("line 7\n", "seven\n")
EDIT = {"path": "a.txt", "old_string": "line 7\n", "new_string": "seven\n"}

each_era = pytest.mark.parametrize("mode", [LEGACY, MODERN])


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> FakeCode:
    """Give a program that stands in for VS Code."""
    return fake_code(tmp_path_factory.mktemp("code"))


@pytest.fixture(scope="module")
def editor_state(code: FakeCode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a state folder whose person has switched the editor on."""
    review = {"wait_seconds": 30, "channels": {"vscode": True}, "vscode": {"command": [str(code.program)]}}
    state = with_settings(tmp_path_factory.mktemp("editor") / "state", {"server": {"port": 0}, "review": review})
    yield state
    stop_server(state)


@pytest.fixture
def desk(root: Path, editor_state: Path) -> Iterator[Reviewer]:
    with reviewing(root, editor_state) as reviewer:
        yield reviewer


def opened(code: FakeCode, desk: Reviewer) -> dict[str, Any]:
    """Wait until the editor shows the one review that waits, and return how it was started."""
    (review,) = desk.waiting()
    session = next(one for one in desk.agent.call("list_reviews").data["reviews"] if one["path"] == review["path"])
    folder = session["session_path"]
    found: dict[str, Any] = until(
        "the editor was started",
        lambda: next((one for one in code.starts() if one["arguments"][2].startswith(folder)), None),
    )
    return found


@pytest.mark.req("RV-02.c", "RV-04.b", "RV-06.a")
def test_a_save_with_an_empty_line_at_its_end_approves(desk: Reviewer, code: FakeCode) -> None:
    file = desk.write()
    proposed = desk.start(**EDIT)
    started = opened(code, desk)
    assert started["arguments"][:2] == ["--wait", "--diff"]
    current, future = (Path(name) for name in started["arguments"][2:])
    assert (current.read_text(), future.read_text()) == (TEXT, WANTED)
    future.write_text(WANTED.replace("line 9\n", "nine\n") + "\n")
    answer = proposed.result(30).ok().data
    assert (answer["user_action"], answer["decided_by"]) == ("APPROVE", "vscode")
    assert "-line 9\n+nine\n" in answer["user_feedback_diff"]
    until("the editor was let go", lambda: not is_alive(started["pid"]))
    desk.commit(answer["session_path"]).ok()
    assert file.read_text() == WANTED.replace("line 9\n", "nine\n")
    assert not future.exists()


@pytest.mark.req("RV-04.b")
def test_a_proposal_that_ends_with_empty_lines_needs_one_more(desk: Reviewer, code: FakeCode) -> None:
    file = desk.write(text=TEXT + "\n\n")
    proposed = desk.start(**EDIT)
    future = Path(opened(code, desk)["arguments"][3])
    future.write_text(WANTED + "\n\n\n")
    answer = proposed.result(30).ok().data
    assert answer["user_action"] == "APPROVE"
    desk.commit(answer["session_path"]).ok()
    assert file.read_text() == WANTED + "\n\n"


@pytest.mark.req("RV-04.c", "RV-05")
def test_any_other_save_is_a_revision_on_whose_text_the_agent_goes_on(desk: Reviewer, code: FakeCode) -> None:
    file = desk.write()
    proposed = desk.start(**EDIT)
    future = Path(opened(code, desk)["arguments"][3])
    future.write_text(WANTED.replace("seven", "SIEBEN"))
    answer = proposed.result(30).ok().data
    assert answer["user_action"] == "REVIEW"
    assert "-seven\n+SIEBEN\n" in answer["user_feedback_diff"]
    again = {"path": "a.txt", "session_path": answer["session_path"]}
    refused = desk.agent.call("propose_and_review", **again, old_string="seven", new_string="x")
    assert refused.error["error_type"] == "validation_error"
    second = desk.start(**again, old_string="SIEBEN", new_string="sieben")
    until("the next round is shown", lambda: "sieben" in future.read_text())
    future.write_text(future.read_text() + "\n")
    assert second.result(30).ok().data["user_action"] == "APPROVE"
    desk.commit(answer["session_path"]).ok()
    assert file.read_text() == TEXT.replace("line 7\n", "sieben\n")


@pytest.mark.req("RV-04.b")
def test_line_ends_and_mark_of_the_original_survive_a_save(desk: Reviewer, code: FakeCode) -> None:
    file = desk.root / "a.txt"
    file.write_bytes("\ufeffeins\r\nzwei\r\n".encode())
    proposed = desk.start(path="a.txt", old_string="zwei", new_string="drei")
    future = Path(opened(code, desk)["arguments"][3])
    future.write_bytes(future.read_bytes() + b"\r\n")
    answer = proposed.result(30).ok().data
    assert answer["user_action"] == "APPROVE"
    desk.commit(answer["session_path"]).ok()
    assert file.read_bytes() == "\ufeffeins\r\ndrei\r\n".encode()


@pytest.mark.req("RV-11")
@pytest.mark.parametrize(
    "name",
    [
        'it\'s "quoted".txt',
        "$(touch hacked).txt",
        "`touch hacked`.txt",
        "-rf",
        "--help",
        "a b;touch hacked",
        "x\ny.txt",
    ],
)
def test_no_file_name_is_seen_by_a_shell(desk: Reviewer, code: FakeCode, name: str) -> None:
    file = desk.root / name
    file.write_text(TEXT)
    proposed = desk.start(**{**EDIT, "path": str(file)})
    started = opened(code, desk)
    current, future = (Path(argument) for argument in started["arguments"][2:])
    assert len(started["arguments"]) == 4
    assert (current.name, future.name) == (f"current_{name}", f"future_{name}")
    assert future.is_absolute()
    future.write_text(WANTED + "\n")
    answer = proposed.result(30).ok().data
    desk.commit(answer["session_path"], str(file)).ok()
    assert file.read_text() == WANTED
    for folder in (desk.root, desk.state, future.parent.parent, Path("/"), Path.home(), Path.cwd()):
        assert not (folder / "hacked").exists()


@pytest.mark.req("RV-02.a")
def test_what_is_saved_after_a_decision_changes_nothing(desk: Reviewer, code: FakeCode) -> None:
    file = desk.write()
    proposed = desk.start(**EDIT)
    started = opened(code, desk)
    future = Path(started["arguments"][3])
    desk.decide(desk.waiting()[0], "approve")
    future.write_text("something else\n\n\n")
    answer = proposed.result(30).ok().data
    assert answer["decided_by"] == "terminal"
    until("the editor was let go", lambda: not is_alive(started["pid"]))
    _hear_another_save(desk)
    desk.commit(answer["session_path"]).ok()
    assert file.read_text() == WANTED


def _hear_another_save(desk: Reviewer) -> None:
    """Have a later save of another review heard: by then every open review was looked at since."""
    desk.write("other.txt")
    proposed = desk.start(**{**EDIT, "path": "other.txt"})
    desk.waiting(2)
    sessions = {row["path"]: row["session_path"] for row in desk.agent.call("list_reviews").data["reviews"]}
    (Path(sessions[str(desk.root / "other.txt")]) / "future_other.txt").write_text(WANTED + "\n")
    assert proposed.result(30).ok().data["decided_by"] == "vscode"


@pytest.mark.req("RV-02.a")
def test_two_reviews_at_once_are_decided_apart(desk: Reviewer, code: FakeCode) -> None:
    desk.write()
    desk.write("b.txt")
    first, second = desk.start(**EDIT), desk.start(**{**EDIT, "path": "b.txt"})
    by_path = {one["path"]: one for one in desk.waiting(2)}
    listed = {one["path"]: one["session_path"] for one in desk.agent.call("list_reviews").data["reviews"]}
    future = Path(listed[str(desk.root / "b.txt")]) / "future_b.txt"
    future.write_text(WANTED + "\n")
    desk.decide(by_path[str(desk.root / "a.txt")], "reject", reason="not a")
    assert first.result(30).ok().data["user_action"] == "REJECT"
    assert second.result(30).ok().data["user_action"] == "APPROVE"


@pytest.mark.req("RV-02.c")
def test_an_editor_that_cannot_be_started_leaves_the_other_ways(root: Path, tmp_path: Path) -> None:
    review = {"channels": {"vscode": True}, "vscode": {"command": [str(tmp_path / "missing")]}}
    state = with_settings(tmp_path / "state", {"server": {"port": 0}, "review": review})
    try:
        with reviewing(root, state) as desk:
            desk.write()
            proposed = desk.start(**EDIT)
            desk.decide(desk.waiting()[0], "approve")
            assert proposed.result(30).ok().data["user_action"] == "APPROVE"
    finally:
        stop_server(state)


@pytest.fixture(scope="module")
def asking_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a state folder whose server waits for a person a few seconds."""
    settings = {"server": {"port": 0}, "review": {"wait_seconds": 8, "max_question_chars": 2000}}
    state = with_settings(tmp_path_factory.mktemp("asking") / "state", settings)
    yield state
    stop_server(state)


@contextmanager
def hosted(host: Host, root: Path, state: Path, mode: str) -> Iterator[Reviewer]:
    """Connect a client that can ask its user."""
    with Agent([root], state, mode=mode, elicit=host) as agent:
        yield Reviewer(agent, root, state)


@pytest.mark.req("RV-02.d")
@each_era
def test_a_client_asks_its_user_with_the_whole_diff(root: Path, asking_state: Path, mode: str) -> None:
    host = Host(decision="approve")
    with hosted(host, root, asking_state, mode) as desk:
        file = desk.write()
        answer = desk.propose(**EDIT)
        assert (answer["user_action"], answer["decided_by"]) == ("APPROVE", "elicitation")
        (asked,) = host.questions
        assert "-line 7\n+seven\n" in asked.message
        assert str(file) in asked.message
        assert asked.requested_schema["properties"]["decision"]["enum"] == ["approve", "reject", "revise"]
        desk.commit(answer["session_path"]).ok()
        assert file.read_text() == WANTED


@pytest.mark.req("RV-02.d")
@each_era
@pytest.mark.parametrize(
    ("host", "action", "reason"),
    [
        (Host(decision="reject", comment="no thanks"), "REJECT", "no thanks"),
        (Host(decision="revise", comment="shorter"), "REVIEW", "shorter"),
        (Host("decline"), "REJECT", "The user declined."),
    ],
)
def test_what_the_user_says_to_the_client_counts(
    root: Path, asking_state: Path, mode: str, host: Host, action: str, reason: str
) -> None:
    with hosted(host, root, asking_state, mode) as desk:
        file = desk.write()
        answer = desk.propose(**EDIT)
        assert (answer["user_action"], answer["reason"]) == (action, reason)
        assert file.read_text() == TEXT


@pytest.mark.req("RV-02.d")
@each_era
def test_a_question_that_was_closed_leaves_the_other_ways_and_is_not_asked_again(
    root: Path, asking_state: Path, mode: str
) -> None:
    host = Host("cancel")
    with hosted(host, root, asking_state, mode) as desk:
        desk.write()
        proposed = desk.start(**EDIT)
        (review,) = desk.waiting()
        until("the user was asked", lambda: host.questions)
        time.sleep(0.5)
        desk.decide(review, "approve")
        answer = proposed.result(30).ok().data
        assert (answer["user_action"], answer["decided_by"], len(host.questions)) == ("APPROVE", "terminal", 1)


@pytest.mark.req("RV-02.a", "RV-02.d")
def test_a_decision_elsewhere_closes_the_question_of_the_client(root: Path, asking_state: Path) -> None:
    host = Host(seconds=60, decision="reject")
    with hosted(host, root, asking_state, LEGACY) as desk:
        desk.write()
        proposed = desk.start(**EDIT)
        (review,) = desk.waiting()
        until("the user was asked", lambda: host.questions)
        desk.decide(review, "approve")
        assert proposed.result(30).ok().data["user_action"] == "APPROVE"
        until("the question was withdrawn", lambda: host.given_up)


@pytest.mark.req("RV-02.a", "RV-02.d")
def test_an_answer_to_the_client_that_comes_second_changes_nothing(root: Path, asking_state: Path) -> None:
    host = Host(seconds=2, decision="approve")
    with hosted(host, root, asking_state, MODERN) as desk:
        desk.write()
        proposed = desk.start(**EDIT)
        (review,) = desk.waiting()
        desk.decide(review, "reject", reason="no")
        answer = proposed.result(30).ok().data
        assert (answer["user_action"], answer["reason"]) == ("REJECT", "no")


@pytest.mark.req("RV-02.d")
@each_era
def test_what_cannot_be_shown_in_full_is_not_asked(root: Path, asking_state: Path, mode: str) -> None:
    host = Host(decision="approve")
    with hosted(host, root, asking_state, mode) as desk:
        desk.write()
        proposed = desk.start(path="a.txt", old_string="line 7\n", new_string="x" * 3000)
        (review,) = desk.waiting()
        desk.decide(review, "reject")
        assert proposed.result(30).ok().data["user_action"] == "REJECT"
        assert host.questions == []
