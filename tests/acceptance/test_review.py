"""Review by a person, as an agent and a person live through it: propose, wait, decide, go on, commit."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import stop_server
from tests.helpers.agent import LEGACY, MODERN, Agent
from tests.helpers.doors import until
from tests.helpers.reviewer import TEXT, Reviewer, reviewing, with_settings

pytestmark = pytest.mark.timeout(120)

PATIENT = {"server": {"port": 0}, "review": {"wait_seconds": 50}}
HASTY = {"server": {"port": 0}, "review": {"wait_seconds": 0.5}}


@pytest.fixture(scope="module")
def patient_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a state folder whose server waits long for a person."""
    state = with_settings(tmp_path_factory.mktemp("patient") / "state", PATIENT)
    yield state
    stop_server(state)


@pytest.fixture(scope="module")
def hasty_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a state folder whose server soon answers PENDING."""
    state = with_settings(tmp_path_factory.mktemp("hasty") / "state", HASTY)
    yield state
    stop_server(state)


@pytest.fixture
def desk(root: Path, patient_state: Path) -> Iterator[Reviewer]:
    with reviewing(root, patient_state) as reviewer:
        yield reviewer


@pytest.fixture
def hasty(root: Path, hasty_state: Path) -> Iterator[Reviewer]:
    with reviewing(root, hasty_state) as reviewer:
        yield reviewer


def approved(desk: Reviewer, **arguments: Any) -> str:
    """Propose something, have it approved, and return its session."""
    proposed = desk.start(**arguments)
    (review,) = desk.waiting()
    desk.decide(review, "approve")
    answer = proposed.result(30).ok().data
    assert answer["user_action"] == "APPROVE"
    return str(answer["session_path"])


@pytest.mark.req("RV-01.b", "RV-06.a")
@pytest.mark.parametrize("mode", [LEGACY, MODERN])
def test_a_proposal_is_shown_approved_and_committed(root: Path, patient_state: Path, mode: str) -> None:
    with reviewing(root, patient_state, mode=mode) as desk:
        file = desk.write()
        proposed = desk.start(path="a.txt", old_string="line 7\n", new_string="line seven\n")
        (review,) = desk.waiting()
        (session,) = desk.sessions()
        folder = desk.state / "reviews" / session
        wanted = TEXT.replace("line 7\n", "line seven\n")
        assert session.startswith("mcp_review_")
        assert {path.name: path.read_text() for path in folder.iterdir()} == {
            "current_a.txt": TEXT,
            "future_a.txt": wanted,
        }
        assert (file.read_text(), review["user_action"], review["path"]) == (TEXT, "PENDING", str(file))
        desk.decide(review, "approve")
        answer = proposed.result(30).ok().data
        assert (answer["user_action"], answer["session_path"]) == ("APPROVE", str(folder))
        assert file.read_text() == TEXT
        done = desk.commit(answer["session_path"]).ok().data
        assert file.read_text() == wanted
        assert (desk.sessions(), done["user_action"]) == (set(), "APPROVE")
        changes = desk.agent.call("list_changes").data["changes"]
        assert [(one["kind"], one["change_id"]) for one in changes] == [("review", done["change_id"])]
        desk.agent.call("undo_change", change_id=done["change_id"]).ok()
        assert file.read_text() == TEXT


@pytest.mark.req("RV-01.a", "RV-01.c")
@pytest.mark.parametrize(
    ("arguments", "error_type"),
    [
        ({"old_string": "line 99\n", "new_string": "x"}, "validation_error"),
        ({"old_string": "line", "new_string": "x"}, "validation_error"),
        ({"old_string": "line 7", "new_string": "line 7"}, "validation_error"),
        ({"old_string": "", "new_string": "x"}, "file_exists"),
        ({"path": "missing.txt", "old_string": "a", "new_string": "b"}, "file_not_found"),
        ({"edits": [{"old_string": "line 7\n", "new_string": "7\n"}, {"old_string": "no", "new_string": "b"}]}, "validation_error"),
        ({"path": "binary", "old_string": "a", "new_string": "b"}, "validation_error"),
    ],
)  # fmt: skip
def test_a_proposal_is_refused_as_the_same_edit_would_be(
    hasty: Reviewer, arguments: dict[str, Any], error_type: str
) -> None:
    hasty.write()
    (hasty.root / "binary").write_bytes(b"a\0b")
    before = hasty.sessions() if (hasty.state / "reviews").exists() else set()
    given = {"path": "a.txt", **arguments}
    reply = hasty.agent.call("propose_and_review", **given)
    edits = arguments.get("edits") or [{name: given[name] for name in ("old_string", "new_string")}]
    edited = hasty.agent.call("edit_files", files=[{"path": given["path"], "edits": edits}]).data["files"][0]["error"]
    assert reply.error["error_type"] == error_type
    assert reply.error == edited
    assert hasty.sessions() == before
    assert [one for one in hasty.person("pending_reviews")["reviews"] if one["root"] == str(hasty.root)] == []


@pytest.mark.req("RV-01.a")
@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a.txt"},
        {"path": "a.txt", "old_string": "line 7"},
        {"path": "a.txt", "new_string": "x", "edits": [{"old_string": "a", "new_string": "b"}]},
        {"path": "a.txt", "edits": []},
        {"path": "a.txt", "new_string": "x", "expected_replacements": 0},
        {"path": "a.txt", "new_string": "x", "decision": "approve"},
    ],
)
def test_arguments_that_do_not_go_together_are_refused(hasty: Reviewer, arguments: dict[str, Any]) -> None:
    hasty.write()
    assert hasty.agent.call("propose_and_review", **arguments).code == "INVALID_ARGUMENT"


@pytest.mark.req("RV-01.a")
def test_a_path_outside_cannot_be_proposed(hasty: Reviewer) -> None:
    (hasty.root / "link").symlink_to("/etc/hostname")
    for path in ("/etc/hostname", "../x.txt", "link"):
        reply = hasty.agent.call("propose_and_review", path=path, new_string="x")
        assert reply.code == "ACCESS_DENIED", path


@pytest.mark.req("RV-01.b", "RV-06.a")
def test_a_new_file_is_created_only_by_the_commit(desk: Reviewer) -> None:
    session = approved(desk, path="new.txt", new_string="hello\n")
    assert not (desk.root / "new.txt").exists()
    desk.commit(session, "new.txt").ok()
    assert (desk.root / "new.txt").read_text() == "hello\n"


@pytest.mark.req("RV-03.a")
def test_waiting_sends_progress_and_blocks_nobody(desk: Reviewer) -> None:
    desk.write()
    heard: list[float] = []
    proposed = desk.agent.start(
        "propose_and_review",
        {"path": "a.txt", "old_string": "line 7", "new_string": "x"},
        lambda done, _total, _message: heard.append(done),
    )
    (review,) = desk.waiting()
    began = time.monotonic()
    desk.agent.call("read_text_file", path="a.txt").ok()
    assert time.monotonic() - began < 10
    until("there is progress", lambda: len(heard) >= 2)
    assert heard == sorted(heard)
    desk.decide(review, "reject")
    proposed.result(30).ok()


@pytest.mark.req("RV-03.a")
def test_more_reviews_wait_than_there_are_threads(root: Path, tmp_path: Path) -> None:
    state = with_settings(tmp_path / "state", {"server": {"port": 0, "max_parallel_calls": 2}})
    try:
        with reviewing(root, state) as desk:
            desk.write()
            proposed = [desk.start(path="a.txt", old_string="line 7", new_string=f"v{n}") for n in range(6)]
            reviews = desk.waiting(6)
            assert desk.agent.call("read_text_file", path="a.txt").ok().text
            for review in reviews:
                desk.decide(review, "reject")
            assert {one.result(30).ok().data["user_action"] for one in proposed} == {"REJECT"}
    finally:
        stop_server(state)


@pytest.mark.req("RV-03.b")
def test_after_the_time_it_is_pending_and_the_session_alone_goes_on(hasty: Reviewer) -> None:
    hasty.write()
    first = hasty.propose(path="a.txt", old_string="line 7", new_string="x")
    assert first["user_action"] == "PENDING"
    again = hasty.propose(path="a.txt", session_path=first["session_path"])
    assert (again["user_action"], again["session_path"]) == ("PENDING", first["session_path"])
    (review,) = hasty.waiting()
    hasty.decide(review, "approve")
    assert hasty.propose(path="a.txt", session_path=first["session_path"])["user_action"] == "APPROVE"
    hasty.commit(first["session_path"]).ok()
    committed = hasty.propose(path="a.txt", session_path=first["session_path"])
    assert (committed["user_action"], committed["change_id"]) == ("APPROVE", review["review_id"])


@pytest.mark.req("RV-03.c")
def test_a_client_that_gives_up_and_asks_again_finds_its_review(desk: Reviewer) -> None:
    desk.write()
    arguments = {"path": "a.txt", "old_string": "line 7", "new_string": "x"}
    proposed = desk.start(**arguments)
    (review,) = desk.waiting()
    proposed.cancel()
    (listed,) = desk.agent.call("list_reviews").data["reviews"]
    again = desk.start(**arguments)
    desk.decide(review, "approve")
    answer = again.result(30).ok().data
    assert (answer["user_action"], answer["session_path"]) == ("APPROVE", listed["session_path"])
    assert len(desk.waiting(1)) == 1


@pytest.mark.req("RV-03.d")
def test_the_same_proposal_twice_opens_one_review(desk: Reviewer) -> None:
    desk.write()
    arguments = {"path": "a.txt", "old_string": "line 7", "new_string": "x"}
    proposed = [desk.start(**arguments) for _ in range(4)]
    proposed.append(desk.start(path=str(desk.root / "a.txt"), edits=[{"old_string": "line 7", "new_string": "x"}]))
    (review,) = desk.waiting()
    time.sleep(0.5)
    assert len(desk.waiting(1)) == 1
    desk.decide(review, "approve")
    answers = [one.result(30).ok().data for one in proposed]
    assert {one["user_action"] for one in answers} == {"APPROVE"}
    assert len({one["session_path"] for one in answers}) == 1


@pytest.mark.req("RV-03.e")
def test_reviews_are_listed_in_pages_and_only_beneath_the_callers_roots(hasty: Reviewer, tmp_path: Path) -> None:
    hasty.write()
    sessions = [hasty.propose(path="a.txt", old_string="line 7", new_string=f"v{n}")["session_path"] for n in range(3)]
    first = hasty.agent.call("list_reviews", limit=2).data
    rest = hasty.agent.call("list_reviews", limit=2, cursor=first["next_cursor"]).data
    listed = [one["session_path"] for one in first["reviews"] + rest["reviews"]]
    assert (listed, "next_cursor" in rest) == (sessions[::-1], False)
    assert hasty.agent.call("list_reviews", cursor="nonsense").code == "INVALID_ARGUMENT"
    other = tmp_path / "other"
    other.mkdir()
    with Agent([other], hasty.state) as stranger:
        assert stranger.call("list_reviews").data["reviews"] == []
        for path in ("a.txt", str(hasty.root / "a.txt")):
            reply = stranger.call("propose_and_review", path=path, session_path=sessions[0])
            assert reply.code == "NOT_FOUND"


@pytest.mark.req("RV-04.a", "RV-05")
def test_a_revision_gives_a_diff_and_the_persons_text_is_the_next_base(desk: Reviewer) -> None:
    desk.write()
    proposed = desk.start(path="a.txt", old_string="line 7\n", new_string="agent's 7\n")
    (review,) = desk.waiting()
    mine = TEXT.replace("line 7\n", "person's 7\n")
    desk.decide(review, "revise", text=mine, reason="this way")
    answer = proposed.result(30).ok().data
    session = answer["session_path"]
    assert (answer["user_action"], answer["reason"]) == ("REVIEW", "this way")
    assert "-agent's 7\n+person's 7\n" in answer["user_feedback_diff"]
    for old in ("agent's 7", "line"):
        refused = desk.agent.call(
            "propose_and_review", path="a.txt", session_path=session, old_string=old, new_string="x"
        )
        assert refused.error["error_type"] == "validation_error"
    many = {"old_string": "line", "new_string": "x", "expected_replacements": 29}
    reply = desk.agent.call("propose_and_review", path="a.txt", session_path=session, **many)
    assert reply.code == "INVALID_ARGUMENT"
    second = desk.start(path="a.txt", session_path=session, old_string="person's 7", new_string="our 7")
    until("round two", lambda: desk.waiting()[0]["round"] == 2)
    (review,) = desk.waiting()
    assert desk.show(review)["after"] == TEXT.replace("line 7\n", "our 7\n")
    desk.decide(review, "approve")
    assert second.result(30).ok().data["user_action"] == "APPROVE"
    desk.commit(session).ok()
    assert (desk.root / "a.txt").read_text() == TEXT.replace("line 7\n", "our 7\n")


@pytest.mark.req("RV-04.a")
def test_an_approval_with_changes_tells_the_agent_what_they_were(desk: Reviewer) -> None:
    desk.write()
    proposed = desk.start(path="a.txt", old_string="line 7\n", new_string="agent's 7\n")
    (review,) = desk.waiting()
    desk.decide(review, "approve", text=TEXT.replace("line 7\n", "my 7\n"))
    answer = proposed.result(30).ok().data
    assert answer["user_action"] == "APPROVE"
    assert "-agent's 7\n+my 7\n" in answer["user_feedback_diff"]
    desk.commit(answer["session_path"]).ok()
    assert (desk.root / "a.txt").read_text() == TEXT.replace("line 7\n", "my 7\n")


@pytest.mark.req("RV-06.b")
def test_only_an_approved_session_of_this_file_is_committed(desk: Reviewer) -> None:
    desk.write()
    desk.write("b.txt")
    proposed = desk.start(path="a.txt", old_string="line 7", new_string="x")
    (review,) = desk.waiting()
    session = desk.agent.call("list_reviews").data["reviews"][0]["session_path"]
    assert desk.commit(session).code == "CONFLICT"
    desk.decide(review, "approve")
    proposed.result(30).ok()
    for wrong in ("b.txt", "missing.txt", "/etc/hostname"):
        assert desk.commit(session, wrong).code == "NOT_FOUND"
    for unknown in (session + "0", session[:-1], session + "/..", "mcp_review_0", "/tmp/mcp_review_0", ""):
        assert desk.commit(unknown).code == "NOT_FOUND"
    made = desk.root / "mcp_review_forged"
    made.mkdir()
    (made / "current_a.txt").write_text(TEXT)
    (made / "future_a.txt").write_text("forged\n\n\n")
    assert desk.commit(str(made)).code == "NOT_FOUND"
    assert (desk.root / "a.txt").read_text() == TEXT
    desk.commit(session).ok()
    again = desk.commit(session)
    assert (again.code, again.error["change_id"]) == ("CONFLICT", review["review_id"])


@pytest.mark.req("RV-06.a")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\r\nb\r\n", b"A\r\nb\r\n"),
        (b"\xef\xbb\xbfa\nb", b"\xef\xbb\xbfA\nb"),
        (b"a\n\n\n", b"A\n\n\n"),
        ("a\nö\n".encode("utf-16"), "A\nö\n".encode("utf-16")),
        ("a\nGrüße aus Köln, schöne Straße\n".encode("cp1252"), "A\nGrüße aus Köln, schöne Straße\n".encode("cp1252")),
    ],
)
def test_a_commit_is_byte_exact(desk: Reviewer, before: bytes, after: bytes) -> None:
    file = desk.root / "a.txt"
    file.write_bytes(before)
    file.chmod(0o640)
    desk.commit(approved(desk, path="a.txt", old_string="a\n" if b"\n" in before else "a", new_string="A\n")).ok()
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (after, 0o640)


@pytest.mark.req("RV-07.a")
def test_a_change_made_meanwhile_is_merged_and_shown(desk: Reviewer) -> None:
    file = desk.write()
    session = approved(desk, path="a.txt", old_string="line 7\n", new_string="seven\n")
    file.write_text(TEXT.replace("line 25\n", "twenty-five\n"))
    done = desk.commit(session).ok().data
    assert file.read_text() == TEXT.replace("line 25\n", "twenty-five\n").replace("line 7\n", "seven\n")
    assert "-line 25\n+twenty-five\n" in done["merged_diff"]
    desk.agent.call("undo_change", change_id=done["change_id"]).ok()
    assert file.read_text() == TEXT.replace("line 25\n", "twenty-five\n")


@pytest.mark.req("RV-07.b")
def test_a_change_of_the_same_lines_is_a_conflict_and_nothing_is_written(desk: Reviewer) -> None:
    file = desk.write()
    session = approved(desk, path="a.txt", old_string="line 7\n", new_string="seven\n")
    theirs = TEXT.replace("line 7\n", "sieben\n")
    file.write_text(theirs)
    reply = desk.commit(session)
    assert (reply.code, reply.error["user_action"]) == ("CONFLICT", "CONFLICT")
    assert file.read_text() == theirs
    file.unlink()
    assert desk.commit(session).code == "CONFLICT"
    assert not file.exists()


@pytest.mark.req("RV-08")
def test_a_rejection_closes_the_session_and_gives_the_reason(desk: Reviewer) -> None:
    file = desk.write()
    before = desk.sessions()
    proposed = desk.start(path="a.txt", old_string="line 7", new_string="x")
    (review,) = desk.waiting()
    desk.decide(review, "reject", reason="not like this")
    answer = proposed.result(30).ok().data
    assert (answer["user_action"], answer["reason"]) == ("REJECT", "not like this")
    assert (file.read_text(), desk.sessions()) == (TEXT, before)
    assert desk.commit(answer["session_path"]).code == "CONFLICT"
    assert desk.propose(path="a.txt", session_path=answer["session_path"])["user_action"] == "REJECT"
