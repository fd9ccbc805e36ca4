"""The text of an answer is enough: whoever sees no structured content can do every job, and misses no datum."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.auth.context import CallerKind
from holdfast.text.display import format_percent
from holdfast.tools.table import TOOLS
from tests.helpers import documents
from tests.helpers.agent import Agent, Reply
from tests.helpers.organising import HOUSE, Tidier, approved
from tests.helpers.reviewer import Reviewer, with_settings
from tests.helpers.text_agent import TextOnlyAgent, find, handle
from tests.helpers.trees import plant

PLAN = {
    "plan_hash": "a person's approval names it, and no call of an agent does",
    "made_by": "an agent that made the plan knows it",
    "measures": "figures for a person's plots",
    "totals.moves": "the sum of the moves by status, which are there",
    "is_new": "said as a word",
    "moves.status": "said unless the move is pending",
}
NOT_IN_TEXT: dict[str, dict[str, str]] = {
    "get_file_info": {},
    "edit_files": {
        "status": "a line with a hash was applied, a line with an error failed",
        "error.retryable": "it follows from the code",
        "error.error": "it is always true",
        "error.error_type": "the message says it",
    },
    "list_changes": {"entries": "said when it is more than one", "undoable": "said as a word", "kept": "said when any"},
    "propose_and_review": {},
    "commit_review": {"user_action": "it was committed", "session_path": "the review has ended"},
    "list_reviews": {},
    "create_organization_plan": PLAN,
    "get_plan": PLAN,
    "revise_plan": PLAN,
    "execute_plan": {"executed_at": "the call has just ended", "already_done": "the totals count them"},
    "undo_plan": {"came_back": "counted in the totals", "stayed": "said when any"},
    "list_plans": {"roots": "for the person"},
    "explain_file": {},
    "file_stat": {"exists": "said in words", "size": "what does not exist has none"},
    "file_read": {"content_encoding": "it is always utf-8"},
    "file_write": {},
    "file_delete": {},
    "file_rename": {},
    "file_list": {
        "name": "the end of the path",
        "type": "[FILE] or [DIR]",
        "size": "a directory has none",
        "created_at": "file_stat says it",
        "has_more": "said in words",
    },
    "file_search": {"is_full_file": "said in words"},
    "file_history": {},
    "file_restore": {},
    "project_list": {},
    "mcp_pipe": {"result": "each step's own text stands there instead", "error.retryable": "said in words if so"},
}
"""The tools with structured answers, and what their texts leave out, each with its reason. All else must be there."""


def leaves(data: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value that is no container, with the names that lead to it."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield from leaves(value, f"{path}.{name}" if path else name)
    elif isinstance(data, list):
        for value in data:
            yield from leaves(value, path)
    elif data is not None:
        yield path, data


def missing(reply: Reply, left_out: dict[str, str]) -> list[str]:
    """Return what the data of an answer holds and its text does not say."""
    return [
        f"{path}={value!r}"
        for path, value in leaves(reply.data)
        if not any(f".{path}.".startswith(f".{name}.") or f".{path}".endswith(f".{name}") for name in left_out)
        and not any(form in reply.text for form in forms(value))
    ]


def forms(value: Any) -> list[str]:
    """Return the ways in which a text may say a value."""
    if isinstance(value, bool):
        return [str(value).lower()]
    if isinstance(value, float):
        return [format_percent(value), f"{value:.2f}"]
    if isinstance(value, int):
        return [str(value), f"{value:,}"]
    text = str(value)
    return [text, json.dumps(text, ensure_ascii=False), " ".join(text.split()), text.rstrip("\n")]


class Recorder:
    """Makes calls, keeps the answers of each tool, and hands on their texts alone."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.replies: dict[str, list[Reply]] = {}

    def __call__(self, tool: str, /, **arguments: Any) -> str:
        reply = self.agent.call(tool, **arguments).ok()
        self.replies.setdefault(tool, []).append(reply)
        return reply.text


@pytest.fixture
def state(ended_state: Path) -> Path:
    """Give a state folder whose reviews answer at once."""
    return with_settings(ended_state, {"review": {"wait_seconds": 0.2}})


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """Give a folder that the organiser can learn from."""
    folder = tmp_path / "house"
    folder.mkdir()
    plant(folder, HOUSE)
    return folder


def use_folders(call: Recorder, house: Path) -> None:
    call("write_file", path="a.txt", content="one\ntwo\n")
    for tool in ("read_text_file", "get_file_info"):
        call(tool, path="a.txt")
    call("get_file_info", path=".")
    call("read_files", files=[{"path": "a.txt"}])
    call("read_multiple_files", paths=["a.txt"])
    call("read_media_file", path="movie.mp4")
    call("list_allowed_directories")
    for tool in ("list_directory", "list_directory_with_sizes", "directory_tree"):
        call(tool, path=".")
    call("search_files", path=".", pattern="*.txt")
    call("grep_content", pattern="two")
    call("search_folders", query="invoice")
    (house / "a.json").write_text('{"a": 1}')
    call("query_json", file_path="a.json", expression=".a")
    call("query_yaml", file_path="a.json", expression=".a")
    call("edit_file", path="a.txt", edits=[{"oldText": "one", "newText": "1"}])
    edit = {"old_string": "two", "new_string": "2"}
    call("edit_files", files=[{"path": "a.txt", "edits": [edit]}, {"path": "a.txt", "edits": [edit]}])
    call("append_text", path="a.txt", content="3\n")
    call("create_directory", path="new")
    call("move_file", source="a.txt", destination="new/a.txt")
    call("delete_file", path="new/a.txt")
    call("undo_change", change_id=find(r"^(\w+) .* delete ", call("list_changes", limit=3)))
    call("list_changes")


def use_reviews(call: Recorder, person: Reviewer) -> None:
    session = handle("session_path", call("propose_and_review", path="r.txt", new_string="proposed\n"))
    call("list_reviews")
    (review,) = person.waiting()
    person.decide(review, "revise", text="the person's\n", reason="Rather so.")
    call("propose_and_review", path="r.txt", session_path=session)
    again = {"path": "r.txt", "session_path": session, "old_string": "the", "new_string": "THE"}
    call("propose_and_review", **again)
    (review,) = person.waiting()
    person.decide(review, "approve")
    call("propose_and_review", path="r.txt", session_path=session)
    call("commit_review", session_path=session, original_path="r.txt")
    session = handle("session_path", call("propose_and_review", path="r.txt", old_string="THE", new_string="A"))
    (review,) = person.waiting()
    person.decide(review, "reject", reason="No.")
    call("propose_and_review", path="r.txt", session_path=session)


def use_organiser(call: Recorder, tidier: Tidier) -> None:
    plan_id = find(r"^Plan (\w+)", call("create_organization_plan", folder_path="."))
    for part in ("moves", "uncertain", "skipped"):
        call("get_plan", plan_id=plan_id, show=part)
    call("revise_plan", plan_id=plan_id, changes=[{"path": "qwx", "folder": "Odds and ends"}])
    call("get_plan", plan_id=plan_id)
    call("explain_file", path="qwx")
    tidier.approve({"plan_id": plan_id})
    call("execute_plan", plan_id=plan_id)
    call("list_plans")
    call("explain_file", path="Odds and ends/qwx")
    call("undo_plan", plan_id=plan_id)


def use_store(call: Recorder) -> None:
    project = {"project": "notes"}
    call("file_stat", **project, path="/a")
    call("file_write", **project, path="/a", content="one two\n", idempotency_key="k")
    call("file_write", **project, path="/a", content="one two\n", idempotency_key="k")
    call("file_write", **project, path="/a", content="three\n")
    call("file_stat", **project, path="/a")
    call("file_read", **project, path="/a")
    call("file_list", **project)
    call("file_search", **project, query="three")
    call("file_rename", **project, from_path="/a", to_path="/d/b")
    call("file_list", **project)
    version = find(r"^version (\d+):", call("file_history", **project, path="/d/b"))
    call("file_restore", **project, path="/d/b", version=int(version))
    call("project_list")
    call("file_delete", **project, path="/d/b")
    call("mcp_pipe", steps=[{"id": "s", "tool": "project_list"}, {"id": "t", "tool": "file_read", "arguments": {"project": "p", "path": "/none"}}], continue_on_error=True)  # fmt: skip


@pytest.mark.req("SV-06.c")
def test_every_answer_says_in_its_text_what_its_data_holds(house: Path, state: Path) -> None:
    with Agent([house], state) as agent:
        call = Recorder(agent)
        use_folders(call, house)
        use_reviews(call, Reviewer(agent, house, state))
        use_organiser(call, Tidier(agent, house, state))
        use_store(call)
        listed = {tool.name for tool in agent.tools()}
    assert listed <= set(call.replies), "every tool that a client is listed has its call here"
    expected = {tool.name for tool in TOOLS if tool.audience is CallerKind.AGENT}
    assert set(call.replies) == expected, "every tool has its call here"
    structured = {tool.name for tool in TOOLS if tool.audience is CallerKind.AGENT and tool.output}
    assert structured == set(NOT_IN_TEXT), "what a text leaves out was decided for every tool"
    unsaid = {
        tool: found
        for tool, replies in call.replies.items()
        for reply in replies
        if reply.result.structured_content and (found := missing(reply, NOT_IN_TEXT.get(tool, {})))
    }
    assert unsaid == {}, json.dumps(unsaid, indent=1)


@pytest.fixture
def agent(house: Path, state: Path) -> Iterator[TextOnlyAgent]:
    """Give an agent that sees text alone."""
    with TextOnlyAgent([house], state) as connected:
        yield connected


@pytest.mark.req("SV-06.c")
def test_the_text_is_enough_for_a_review(agent: TextOnlyAgent, house: Path, state: Path) -> None:
    person = Reviewer(agent, house, state)
    person.write("a.txt", "one\ntwo\n")
    said = agent.ask("propose_and_review", path="a.txt", old_string="one", new_string="1")
    assert said.startswith("PENDING")
    session, path = handle("session_path", said), handle("path", said)
    assert session in agent.ask("list_reviews")
    (review,) = person.waiting()
    person.decide(review, "revise", text="first\ntwo\n", reason="Write the word.")
    said = agent.ask("propose_and_review", path=path, session_path=session)
    assert said.startswith("REVIEW")
    assert find(r"comment: (.*)", said) == "Write the word."
    theirs = find(r"^\+([a-z]\w+)$", said)
    said = agent.ask(
        "propose_and_review",
        path=handle("path", said),
        session_path=handle("session_path", said),
        old_string=theirs,
        new_string=theirs.upper(),
    )
    (review,) = person.waiting()
    person.decide(review, "approve")
    said = agent.ask("propose_and_review", path=handle("path", said), session_path=handle("session_path", said))
    assert said.startswith("APPROVE")
    done = agent.ask(
        "commit_review", session_path=handle("session_path", said), original_path=handle("original_path", said)
    )
    assert (house / "a.txt").read_text() == "FIRST\ntwo\n"
    agent.ask("undo_change", change_id=handle("change_id", done))
    assert (house / "a.txt").read_text() == "one\ntwo\n"


@pytest.mark.req("SV-06.c", "RV-08")
def test_the_text_says_why_a_proposal_was_rejected(agent: TextOnlyAgent, house: Path, state: Path) -> None:
    person = Reviewer(agent, house, state)
    said = agent.ask("propose_and_review", path="new.txt", new_string="x")
    (review,) = person.waiting()
    person.decide(review, "reject", reason="Not in this folder.")
    said = agent.ask("propose_and_review", path="new.txt", session_path=handle("session_path", said))
    assert said.startswith("REJECT")
    assert "Not in this folder." in said


@pytest.mark.req("SV-06.c")
def test_a_commit_that_merged_shows_what_it_merged(agent: TextOnlyAgent, house: Path, state: Path) -> None:
    person = Reviewer(agent, house, state)
    path = person.write()
    said = agent.ask("propose_and_review", path="a.txt", old_string="line 2\n", new_string="LINE 2\n")
    (review,) = person.waiting()
    person.decide(review, "approve")
    path.write_text(path.read_text() + "theirs\n")
    done = agent.ask("commit_review", session_path=handle("session_path", said), original_path="a.txt")
    assert "+theirs" in done


@pytest.mark.req("SV-06.c")
def test_the_text_is_enough_for_a_plan(agent: TextOnlyAgent, house: Path, state: Path) -> None:
    plant(house, {f"more_{number:03}.zzz": f"nothing known {number}" for number in range(60)})
    before = {path.name for path in house.iterdir()}
    plan_id = find(r"^Plan (\w+)", agent.ask("create_organization_plan", folder_path="."))
    assert plan_id in agent.ask("list_plans")
    moves = agent.ask("get_plan", plan_id=plan_id, show="moves")
    assert find(r"^pasta\.txt -> (\S+)", moves) == "Recipes/pasta.txt"
    uncertain = every_page(agent, plan_id, "uncertain")
    odd = find(r"^(qwx): ", uncertain)
    assert all(f"more_{number:03}.zzz: " in uncertain for number in range(60))
    agent.ask("revise_plan", plan_id=plan_id, changes=[{"path": odd, "folder": "Odd"}])
    assert f"{odd} -> Odd/{odd}" in every_page(agent, plan_id, "moves")
    why = agent.ask("explain_file", path=odd)
    assert "The agent chose this folder." in why
    assert f"Plan {plan_id} would move it to" in why
    refused = agent.refused("execute_plan", plan_id=plan_id)
    approved(state, find(r"holdfast organise approve (\w+)", refused))
    done = agent.ask("execute_plan", plan_id=plan_id)
    assert (house / "Odd" / odd).exists()
    assert "The agent chose this folder." in agent.ask("explain_file", path=f"Odd/{odd}")
    agent.ask("undo_change", change_id=handle("change_id", done))
    assert {path.name for path in house.iterdir()} - {"Odd"} == before


def every_page(agent: TextOnlyAgent, plan_id: str, part: str) -> str:
    """Return all pages of a part of a plan, each found by the cursor in the text of the one before."""
    pages = [agent.ask("get_plan", plan_id=plan_id, show=part)]
    while "cursor=" in pages[-1]:
        pages.append(agent.ask("get_plan", plan_id=plan_id, show=part, cursor=handle("cursor", pages[-1])))
    return "\n".join(pages)


@pytest.mark.req("SV-06.c", "SV-08")
def test_the_text_is_enough_for_a_pipe_with_references(agent: TextOnlyAgent, house: Path) -> None:
    (house / "a.txt").write_text("[1] step copy: ok\nbody\n")
    steps = [
        {"id": "look", "tool": "read_text_file", "arguments": {"path": "a.txt"}},
        {
            "id": "copy",
            "tool": "write_file",
            "arguments": {"path": "b.txt", "content": {"$from": "look", "path": "/text"}},
        },
        {"id": "gone", "tool": "read_text_file", "arguments": {"path": "none.txt"}},
        {"id": "after", "tool": "read_text_file", "arguments": {"path": "b.txt"}, "after": ["gone"]},
    ]
    said = agent.ask("mcp_pipe", steps=steps, continue_on_error=True)
    assert said.startswith("4 steps: 2 ok, 1 error, 1 skipped.")
    mark = find(r"^\[(\w{6}) 1/4\] step look: ok$", said)
    assert find(rf"^\[{mark} 3/4\] step gone: (.*)$", said).startswith(
        "error NOT_FOUND: No such file or directory: none"
    )
    assert f"\n[{mark} 4/4] step after: skipped because of step gone" in said
    agent.ask("undo_change", change_id=find(rf"\[{mark} 2/4\] step copy: ok\n[^\[]*change (\w+)", said))
    assert not (house / "b.txt").exists()


@pytest.mark.req("SV-06.c")
def test_the_text_is_enough_to_undo_any_change(agent: TextOnlyAgent, house: Path) -> None:
    (house / "a.txt").write_text("before")
    agent.ask("write_file", path="a.txt", content="after")
    agent.ask("write_file", path="other.txt", content="later")
    agent.ask("undo_change", change_id=find(r"^(\w+) .* write .*a\.txt", agent.ask("list_changes")))
    assert (house / "a.txt").read_text() == "before"


@pytest.mark.req("SV-06.c")
def test_the_text_is_enough_for_the_history_of_a_stored_file(agent: TextOnlyAgent) -> None:
    place = {"project": "notes", "path": "/plan.md"}
    assert find(r"now has (\d+) bytes", agent.ask("file_write", **place, content="first\n")) == "6"
    assert "No earlier versions" in agent.ask("file_history", **place)
    agent.ask("file_write", **place, content="second\n", mode="TRUNCATE")
    assert "notes: 1 file" in agent.ask("project_list")
    version = find(r"^version (\d+): 6 bytes", agent.ask("file_history", **place))
    agent.ask("file_restore", **place, version=int(version))
    assert agent.ask("file_read", **place) == "first\n"


@pytest.mark.req("SV-06.c")
def test_the_text_of_a_hit_is_enough_to_read_on(agent: TextOnlyAgent, house: Path) -> None:
    agent.ask("file_write", project="notes", path="/a", content="A lighthouse stands on the cliff.\n")
    hit = agent.ask("file_search", project="notes", query="lighthouse")
    start, end = find(r"\[(\d+), ", hit), find(r", (\d+)\)", hit)
    path = find(r"^(/\S+) \[", hit)
    read = agent.ask("file_read", project="notes", path=path, offset=int(start), length=int(end) - int(start))
    assert "lighthouse" in read
    hit = agent.ask("grep_content", pattern="number 77")
    assert "Invoice number 77" in agent.ask("read_text_file", path=find(r"^File: (\S+)", hit))


@pytest.mark.req("SV-06.c")
def test_a_write_to_the_database_says_what_it_did_and_how_large_the_file_is_now(agent: TextOnlyAgent) -> None:
    place = {"project": "notes", "path": "/a.txt"}
    said = [
        agent.ask("file_write", **place, content="four", idempotency_key="once"),
        agent.ask("file_write", **place, content="four", idempotency_key="once"),
        agent.ask("file_write", **place, content="four"),
        agent.ask("file_write", **place, content="XX", mode="overwrite"),
        agent.ask("file_write", **place, content="all", mode="TRUNCATE"),
    ]
    where = "/a.txt in project notes"
    assert said == [
        f"Created the file: 4 bytes written. {where} now has 4 bytes.",
        f"Nothing was written again: the call with this idempotency_key wrote 4 bytes to {where} before.",
        f"Appended at the end: 4 bytes written. {where} now has 8 bytes.",
        f"Overwrote in place: 2 bytes written. {where} now has 8 bytes.",
        f"Replaced the whole file: 3 bytes written. {where} now has 3 bytes.",
    ]


@pytest.mark.req("SV-06.c", "OR-32.a")
def test_a_folder_that_is_spelled_otherwise_is_told_to_the_agent_that_chose_it(agent: TextOnlyAgent) -> None:
    plan_id = find(r"^Plan (\w+)", agent.ask("create_organization_plan", folder_path="."))
    said = agent.ask("revise_plan", plan_id=plan_id, changes=[{"path": "qwx", "folder": "Odd: things"}])
    assert "[The folder is called Odd things, not Odd: things.]" in said
    said = agent.ask("revise_plan", plan_id=plan_id, changes=[{"path": "qwx", "folder": "recipes"}])
    assert "[The folder is called Recipes, not recipes.]" in said
    said = agent.ask("revise_plan", plan_id=plan_id, changes=[{"path": "qwx", "folder": "Recipes"}])
    assert "is called" not in said


@pytest.mark.req("SV-06.c", "OR-32.a")
def test_a_folder_that_a_file_hardly_resembles_is_no_guess(agent: TextOnlyAgent, house: Path) -> None:
    (house / "far.txt").write_text("Quantum chromodynamics on a lattice, with staggered fermions at finite density.\n")
    (house / "q7.pdf").write_bytes(documents.pdf("Laborbefund Haemoglobin Leukozyten Blutbild Referenzbereich"))
    plan_id = find(r"^Plan (\w+)", agent.ask("create_organization_plan", folder_path="."))
    uncertain = agent.ask("get_plan", plan_id=plan_id, show="uncertain")
    line = find(r"^(far.txt: .*)$", uncertain)
    assert line == "far.txt: no guess: It is not clearly like the files of any folder."
    assert "sure" not in agent.ask("explain_file", path="far.txt")
    agent.ask("revise_plan", plan_id=plan_id, changes=[{"path": "far.txt", "folder": "Ideas"}])
    why = agent.ask("explain_file", path="far.txt")
    assert "The agent chose this folder." in why
    assert "sure" not in why, "the certainty of a choice is none about the content"
    assert "It begins: Laborbefund" in uncertain, "the reader's own lines are no text of the document"


@pytest.mark.req("SV-06.c")
def test_a_write_to_the_database_under_a_path_on_disk_says_that_the_disk_was_not_touched(
    agent: TextOnlyAgent, house: Path
) -> None:
    path = str(house / "pasta.txt")
    said = agent.ask("file_write", project="notes", path=path, content="x")
    assert f"The file on disk at {path} was not touched; write_file changes that one." in said
