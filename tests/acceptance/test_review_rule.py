"""Under a rule of review every tool that would change a file opens a review and answers as propose_and_review does."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from websockets.sync.client import connect

from tests.conftest import stop_server
from tests.helpers.agent import LEGACY, MODERN, Agent, Reply
from tests.helpers.doors import MODERN_META, House
from tests.helpers.reviewer import Host, Reviewer, with_settings

pytestmark = pytest.mark.timeout(120)

HASTY = {"server": {"port": 0}, "review": {"wait_seconds": 0.3}}
PATIENT = {"server": {"port": 0}, "review": {"wait_seconds": 50}}
RULES = [
    {"glob": "watched/**", "access": "review"},
    {"glob": "fixed/**", "access": "read-only"},
    {"glob": "secret/**", "access": "deny"},
]
FOLDERS = {"review": "watched", "read-only": "fixed", "deny": "secret", "allow": "free"}


@pytest.fixture(scope="module")
def hasty_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a state folder whose server soon answers PENDING."""
    state = with_settings(tmp_path_factory.mktemp("hasty") / "state", {**HASTY, "policy": {"rules": RULES}})
    yield state
    stop_server(state)


@pytest.fixture(scope="module")
def patient_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a state folder whose server waits long for a person."""
    state = with_settings(tmp_path_factory.mktemp("patient") / "state", {**PATIENT, "policy": {"rules": RULES}})
    yield state
    stop_server(state)


def plant(root: Path) -> None:
    for folder in FOLDERS.values():
        (root / folder / "tree" / "deep").mkdir(parents=True)
        (root / folder / "a.txt").write_text("plain\nsecond\n")
        (root / folder / "tree" / "one.txt").write_text("one\n")
        (root / folder / "tree" / "deep" / "two.txt").write_text("two\n")


@pytest.fixture
def desk(root: Path, hasty_state: Path) -> Iterator[Reviewer]:
    plant(root)
    with Agent([root], hasty_state) as agent:
        yield Reviewer(agent, root, hasty_state)


def snapshot(root: Path) -> dict[str, bytes | None]:
    """Return every file with its bytes and every directory."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in sorted(root.rglob("*"))
    }


Arguments = Callable[[str], dict[str, Any]]
VERBS: dict[str, tuple[str, Arguments, str]] = {
    "write_file": ("edit", lambda at: {"path": f"{at}/a.txt", "content": "new\n"}, "a.txt"),
    "edit_file": ("edit", lambda at: {"path": f"{at}/a.txt", "edits": [{"oldText": "plain", "newText": "x"}]}, "a.txt"),
    "edit_files": (
        "edit",
        lambda at: {"files": [{"path": f"{at}/a.txt", "edits": [{"old_string": "plain", "new_string": "x"}]}]},
        "a.txt",
    ),
    "append_text": ("edit", lambda at: {"path": f"{at}/a.txt", "content": "third\n"}, "a.txt"),
    "propose_and_review": (
        "edit",
        lambda at: {"path": f"{at}/a.txt", "old_string": "plain", "new_string": "x"},
        "a.txt",
    ),
    "create_directory": ("create_directory", lambda at: {"path": f"{at}/new/dir"}, "new/dir"),
    "move_file": ("move", lambda at: {"source": f"{at}/tree", "destination": f"{at}/moved"}, "tree"),
    "delete_file": ("delete", lambda at: {"path": f"{at}/tree", "recursive": True}, "tree"),
}
"""For each tool the kind of its review, its arguments for a folder, and the path that the agent names."""


def after(root: Path, verb: str, at: str) -> bool:
    """Return whether what a verb does has happened."""
    text = (root / at / "a.txt").read_text() if (root / at / "a.txt").exists() else ""
    match verb:
        case "write_file":
            return text == "new\n"
        case "append_text":
            return text == "plain\nsecond\nthird\n"
        case "create_directory":
            return (root / at / "new" / "dir").is_dir()
        case "move_file":
            return (root / at / "moved" / "deep" / "two.txt").exists() and not (root / at / "tree").exists()
        case "delete_file":
            return not (root / at / "tree").exists()
        case _:
            return text == "x\nsecond\n"


def review_of(reply: Reply) -> dict[str, Any]:
    """Return the review in an answer; of edit_files that of its one file."""
    data = reply.ok().data
    found: dict[str, Any] = data["files"][0]["review"] if "files" in data else data
    return found


@pytest.mark.req("RV-13.h")
@pytest.mark.parametrize("verb", VERBS)
def test_a_changing_tool_opens_a_review_that_a_person_approves_and_commit_review_carries_out(
    desk: Reviewer, verb: str
) -> None:
    kind, arguments, name = VERBS[verb]
    before = snapshot(desk.root)
    reply = desk.agent.call(verb, **arguments("watched"))
    review = review_of(reply)
    assert (review["user_action"], review["kind"]) == ("PENDING", kind)
    assert review["session_path"] in reply.text
    assert snapshot(desk.root) == before
    assert review_of(desk.agent.call(verb, **arguments("watched")))["session_path"] == review["session_path"]
    (waiting,) = desk.waiting()
    assert (waiting["kind"], waiting["path"]) == (kind, str(desk.root / "watched" / name))
    path = f"watched/{name}"
    assert desk.commit(review["session_path"], path).code == "CONFLICT"
    assert desk.decide(waiting, "approve")["kind"] == kind
    going_on = desk.agent.call("propose_and_review", path=path, session_path=review["session_path"])
    assert going_on.ok().data["user_action"] == "APPROVE"
    assert snapshot(desk.root) == before
    done = desk.commit(review["session_path"], path).ok()
    assert after(desk.root, verb, "watched"), done.text
    assert (done.data["kind"], done.data["change_id"]) == (kind, waiting["review_id"])
    listed = desk.agent.call("list_changes").data["changes"][0]
    assert listed["change_id"] == waiting["review_id"]
    assert desk.commit(review["session_path"], path).code == "CONFLICT"
    undo = desk.agent.call("undo_change", change_id=done.data["change_id"])
    assert (review_of(undo)["user_action"], review_of(undo)["kind"]) == ("PENDING", "undo")
    (waiting,) = desk.waiting()
    desk.decide(waiting, "approve")
    desk.commit(review_of(undo)["session_path"], waiting["path"]).ok()
    assert snapshot(desk.root) == before
    assert desk.agent.call("list_changes").data["changes"][0]["kind"] == "undo"


@pytest.mark.req("RV-13.h", "RV-13.c")
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("access", ["read-only", "deny", "allow"])
def test_the_other_accesses_stay_what_they_are(desk: Reviewer, verb: str, access: str) -> None:
    at, before = FOLDERS[access], snapshot(desk.root)
    reply = desk.agent.call(verb, **VERBS[verb][1](at))
    if access == "allow":
        assert verb == "propose_and_review" or after(desk.root, verb, at)
        return
    assert reply.refusals[0] in {"read-only": ("PERMISSION_DENIED",), "deny": ("NOT_FOUND", "ACCESS_DENIED")}[access]
    assert snapshot(desk.root) == before
    assert all(review["root"] != str(desk.root) for review in desk.person("pending_reviews")["reviews"])


RULE_FORMS: dict[str, dict[str, str]] = {
    "root": {"access": "review"},
    "glob": {"glob": "watched/**", "access": "review"},
    "client": {"client": "careful-*", "access": "review"},
    "option": {"glob": "nothing", "access": "review"},
}


@pytest.mark.req("RV-13.h", "RV-13.d")
@pytest.mark.parametrize("form", RULE_FORMS)
def test_a_rule_of_any_form_opens_reviews(root: Path, tmp_path: Path, form: str) -> None:
    plant(root)
    rule = {**RULE_FORMS[form], **({"root": str(root / "watched")} if form == "root" else {})}
    state = with_settings(tmp_path / "state", {**HASTY, "policy": {"rules": [rule]}})
    options = ["--review"] if form == "option" else []
    try:
        with Agent([root], state, name="careful-one", version="1", options=options) as agent:
            before = snapshot(root)
            for verb, (kind, arguments, _) in VERBS.items():
                review = review_of(agent.call(verb, **arguments("watched")))
                assert (review["user_action"], review["kind"]) == ("PENDING", kind)
            assert snapshot(root) == before
        with Agent([root], state, name="free-one", version="1") as other:
            reply = other.call("write_file", path="watched/a.txt", content="other\n").ok()
            is_bound = form in ("root", "glob")
            assert ("PENDING" in reply.text) is is_bound
    finally:
        stop_server(state)


@pytest.mark.req("RV-13.h", "RV-02.a")
@pytest.mark.parametrize("mode", [LEGACY, MODERN])
@pytest.mark.parametrize("verb", VERBS)
def test_the_client_asks_its_user_in_both_eras(root: Path, patient_state: Path, mode: str, verb: str) -> None:
    plant(root)
    kind, arguments, name = VERBS[verb]
    host = Host(decision="approve", comment="go on")
    with Agent([root], patient_state, mode=mode, elicit=host) as agent:
        desk = Reviewer(agent, root, patient_state)
        reply = agent.call(verb, **arguments("watched"))
        review = review_of(reply)
        assert (review["user_action"], review["decided_by"], review["reason"]) == ("APPROVE", "elicitation", "go on")
        (question,) = host.questions
        shown = {"edit": "+", "move": " → ", "delete": "tree/deep/two.txt", "create_directory": "create directory"}
        assert shown[kind].replace("tree/", "") in question.message
        desk.commit(review["session_path"], f"watched/{name}").ok()
        assert after(root, verb, "watched")


@pytest.mark.req("RV-13.h")
def test_a_call_that_waits_goes_on_when_the_person_decides_and_blocks_no_other(root: Path, patient_state: Path) -> None:
    plant(root)
    with Agent([root], patient_state) as agent:
        desk = Reviewer(agent, root, patient_state)
        waiting = [
            agent.start("write_file", {"path": f"watched/new{number}.txt", "content": "x\n"}) for number in range(20)
        ]
        deletion = agent.start("delete_file", {"path": "watched/tree", "recursive": True})
        open_reviews = desk.waiting(21)
        agent.call("read_text_file", path="free/a.txt").ok()
        agent.call("write_file", path="free/b.txt", content="free").ok()
        for review in open_reviews:
            desk.decide(review, "reject" if review["kind"] == "delete" else "approve", reason="as I said")
        assert {future.result(60).ok().data["user_action"] for future in waiting} == {"APPROVE"}
        answer = deletion.result(60).ok()
        assert (answer.data["user_action"], answer.data["reason"]) == ("REJECT", "as I said")
        assert "as I said" in answer.text
        assert (root / "watched" / "tree").is_dir()


@pytest.mark.req("RV-13.h")
def test_files_that_are_free_are_edited_at_once_and_the_others_wait(root: Path, patient_state: Path) -> None:
    plant(root)
    edits = [{"old_string": "plain", "new_string": "x"}]
    files: list[dict[str, Any]] = [
        {"path": "free/a.txt", "edits": edits},
        {"path": "watched/a.txt", "edits": edits},
        {"path": "fixed/a.txt", "edits": edits},
        {"path": "watched/tree/one.txt", "edits": [{"old_string": "one", "new_string": "1"}]},
        {"path": "watched/tree/deep/two.txt", "edits": edits},
        {
            "path": "watched/tree/one.txt",
            "edits": [{"old_string": "one", "new_string": "y"}],
            "expected_hash": "0" * 64,
        },
    ]
    host = Host(decision="approve")
    with Agent([root], patient_state, mode=MODERN, elicit=host) as agent:
        desk = Reviewer(agent, root, patient_state)
        future = agent.start("edit_files", {"files": files})
        newest, oldest = desk.waiting(2)
        assert (root / "free" / "a.txt").read_text() == "x\nsecond\n"
        desk.decide(oldest, "approve")
        desk.decide(newest, "revise", reason="not so")
        reply = future.result(60).ok()
    assert [file["status"] for file in reply.data["files"]] == [
        "applied",
        "review",
        "failed",
        "review",
        "failed",
        "failed",
    ]
    first, second = reply.data["files"][1]["review"], reply.data["files"][3]["review"]
    assert (first["user_action"], second["user_action"], second["reason"]) == ("APPROVE", "REVIEW", "not so")
    assert "Files edited: 1 of 6. For the user to decide: 2." in reply.text
    assert first["session_path"] in reply.text
    assert "not so" in reply.text
    assert host.questions == []  # a reply to one would come with the whole call again
    assert (root / "watched" / "a.txt").read_text() == "plain\nsecond\n"


@pytest.mark.req("RV-13.h")
@pytest.mark.parametrize("mode", [LEGACY, MODERN])
def test_the_client_is_asked_about_one_file_after_the_other(root: Path, patient_state: Path, mode: str) -> None:
    plant(root)
    files = [
        {"path": f"watched/{name}", "edits": [{"old_string": old, "new_string": "x"}]}
        for name, old in (("a.txt", "plain"), ("tree/one.txt", "one"))
    ]
    host = Host(decision="approve")
    with Agent([root], patient_state, mode=mode, elicit=host) as agent:
        reply = agent.call("edit_files", files=files).ok()
        actions = [file["review"]["user_action"] for file in reply.data["files"]]
        assert (actions, len(host.questions)) == (["APPROVE", "APPROVE"], 2)
        for file in reply.data["files"]:
            session = file["review"]["session_path"]
            agent.call("commit_review", session_path=session, original_path=file["path"]).ok()
    assert (root / "watched" / "tree" / "one.txt").read_text() == "x\n"


@pytest.mark.req("RV-13.h")
def test_a_dry_run_only_shows_and_what_an_edit_refuses_is_refused(desk: Reviewer) -> None:
    edit = {"path": "watched/a.txt", "edits": [{"oldText": "plain", "newText": "x"}]}
    assert "+x" in desk.agent.call("edit_file", **edit, dryRun=True).ok().text
    no_match = {"path": "watched/a.txt", "edits": [{"oldText": "nowhere", "newText": "x"}]}
    refused: dict[str, dict[str, Any]] = {
        "edit_file": no_match,
        "write_file": {"path": "watched/a.txt", "content": "plain\nsecond\n"},
        "append_text": {"path": "watched/a.txt", "content": ""},
        "delete_file": {"path": "watched/tree"},
        "move_file": {"source": "watched/a.txt", "destination": "watched/tree"},
        "create_directory": {"path": "watched/a.txt/below"},
    }
    codes = {tool: desk.agent.call(tool, **arguments).code for tool, arguments in refused.items()}
    assert codes == {
        "edit_file": "INVALID_ARGUMENT",
        "write_file": "INVALID_ARGUMENT",
        "append_text": "INVALID_ARGUMENT",
        "delete_file": "NOT_EMPTY",
        "move_file": "ALREADY_EXISTS",
        "create_directory": "NOT_DIRECTORY",
    }
    assert desk.agent.call("create_directory", path="watched/tree").ok().text.endswith("exists already.")
    assert all(review["root"] != str(desk.root) for review in desk.person("pending_reviews")["reviews"])


@pytest.mark.req("RV-13.h")
def test_what_does_not_exist_yet_is_proposed_as_new(desk: Reviewer) -> None:
    calls = {
        "write_file": {"path": "watched/w.txt", "content": "new\n"},
        "append_text": {"path": "watched/p.txt", "content": "new\n"},
    }
    for tool, arguments in calls.items():
        session = desk.agent.call(tool, **arguments).ok().data["session_path"]
        (review,) = desk.waiting()
        shown = desk.show(review)
        assert (shown["is_new_file"], shown["before"], shown["after"]) == (True, "", "new\n")
        desk.decide(review, "approve")
        desk.commit(session, arguments["path"]).ok()
        assert (desk.root / arguments["path"]).read_text() == "new\n"


@pytest.mark.req("RV-13.h")
def test_a_text_of_another_encoding_and_a_binary_file_are_replaced_as_shown(desk: Reviewer) -> None:
    files = {"utf16.txt": "grün\n".encode("utf-16"), "binary": b"\x00\x01\xff" * 40}
    for name, data in files.items():
        (desk.root / "watched" / name).write_bytes(data)
        answer = desk.agent.call("write_file", path=f"watched/{name}", content="blau ü\n").ok().data
        (review,) = desk.waiting()
        assert desk.show(review)["after"] == "blau ü\n"
        desk.decide(review, "approve")
        desk.commit(answer["session_path"], f"watched/{name}").ok()
    assert (desk.root / "watched" / "utf16.txt").read_bytes().decode("utf-16") == "blau ü\n"
    assert (desk.root / "watched" / "binary").read_text() == "blau ü\n"


@pytest.mark.req("RV-13.h")
def test_a_step_of_a_pipe_never_waits(root: Path, patient_state: Path) -> None:
    plant(root)
    steps = [
        {"id": verb, "tool": verb, "arguments": arguments("watched")}
        for verb, (_, arguments, _) in VERBS.items()
        if verb != "propose_and_review"
    ]
    with Agent([root], patient_state, elicit=(host := Host(decision="approve"))) as agent:
        reply = agent.call("mcp_pipe", steps=steps).ok()
        results = {step["id"]: step["result"] for step in reply.data["steps"]}
        results["edit_files"] = results["edit_files"]["files"][0]["review"]
        assert {verb: result["user_action"] for verb, result in results.items()} == dict.fromkeys(results, "PENDING")
        assert host.questions == []
        reviews = Reviewer(agent, root, patient_state).waiting(6)  # edit_file and edit_files proposed the same
        assert {review["kind"] for review in reviews} == {"edit", "move", "delete", "create_directory"}


@pytest.mark.req("RV-13.h", "RV-02.b")
def test_the_terminal_shows_each_kind_as_what_it_is(desk: Reviewer) -> None:
    for verb in ("create_directory", "move_file", "delete_file"):
        desk.agent.call(verb, **VERBS[verb][1]("watched")).ok()
    reviews = {review["kind"]: review["review_id"] for review in desk.waiting(3)}
    listed = desk.command("list").stdout
    assert f"move    {desk.root}/watched/tree → {desk.root}/watched/moved" in listed
    assert f"delete  {desk.root}/watched/tree\n" in listed
    assert "create directory" in listed
    headlines = {
        "move": f"move {desk.root}/watched/tree → {desk.root}/watched/moved: directory (2 files, 8 B)",
        "delete": f"delete {desk.root}/watched/tree: directory (2 files, 8 B)",
        "create_directory": f"create directory {desk.root}/watched/new/dir",
    }
    for kind, headline in headlines.items():
        shown = desk.command("show", reviews[kind][:10]).stdout
        assert shown.startswith(f"{headline}\n")
        assert f"holdfast review approve {reviews[kind][:8]}" in shown
    assert "  deep/two.txt (4 B)" in desk.command("show", reviews["delete"]).stdout
    assert desk.command("edit", reviews["delete"], EDITOR="false").returncode == 2
    assert desk.command("approve", reviews["delete"], desk.code(reviews["move"]), "--yes").returncode != 0
    assert desk.command("revise", reviews["move"], "-m", "call it archive").returncode == 0
    answer = desk.agent.call("move_file", **VERBS["move_file"][1]("watched")).ok()
    assert (answer.data["user_action"], answer.data["reason"]) == ("REVIEW", "call it archive")
    assert "ask for that with the tool" in answer.text
    assert desk.command("reject", reviews["create_directory"], "-m", "no").returncode == 0
    done = desk.command("approve", reviews["delete"], desk.code(reviews["delete"]), "--yes")
    assert done.returncode == 0
    assert done.stdout.startswith(f"Approved: {desk.root}/watched/tree\n")
    listing = desk.agent.call("list_reviews").ok()
    kinds = {(one["kind"], one["user_action"]) for one in listing.data["reviews"]}
    assert kinds == {("move", "REVIEW"), ("delete", "APPROVE")}
    assert f"REVIEW move {desk.root}/watched/tree → {desk.root}/watched/moved" in listing.text


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Give a server with one root, to visit through its address."""
    house = House(tmp_path_factory.mktemp("doors"))
    house.settings(json.dumps({"settings": {"review": {"wait_seconds": 0.3}}}))
    with house.serve(str(house.root)):
        yield house


@pytest.mark.req("RV-13.h")
@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_the_http_door_opens_reviews_and_its_client_is_not_asked(house: House, era: str) -> None:
    plant_once(house.root)
    host = Host(decision="approve")

    async def visit() -> dict[str, Any]:
        headers = {"authorization": f"Bearer {house.token}"}
        async with httpx2.AsyncClient(headers=headers) as http:
            streams = streamable_http_client(f"{house.url}/mcp?review=1", http_client=http)
            async with Client(streams, mode=era, cache=None, elicitation_callback=host) as client:
                result = await client.call_tool("delete_file", {"path": "watched/tree", "recursive": True})
                return dict(result.structured_content or {})

    answer = anyio.run(visit)
    assert (answer["user_action"], answer["kind"]) == ("PENDING", "delete")
    assert host.questions == []
    assert (house.root / "watched" / "tree").is_dir()


@pytest.mark.req("RV-13.h")
def test_the_websocket_door_opens_reviews(house: House) -> None:
    plant_once(house.root)
    address = f"{house.url.replace('http', 'ws')}/ws?review=1"
    with connect(address, additional_headers={"authorization": f"Bearer {house.token}"}) as socket:
        arguments = {"source": "watched/tree", "destination": "watched/moved"}
        params = {"name": "move_file", "arguments": arguments, "_meta": MODERN_META}
        socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
        answer = json.loads(socket.recv(20))
        while "id" not in answer:
            answer = json.loads(socket.recv(20))
    assert answer["result"]["structuredContent"]["user_action"] == "PENDING"
    assert (house.root / "watched" / "tree").is_dir()


def plant_once(root: Path) -> None:
    if not (root / "watched").exists():
        plant(root)
