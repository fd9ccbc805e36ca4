"""The policy: every tool that takes or reveals a local path, against every kind of rule, through the official client."""

import json
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from holdfast.auth.context import CallerKind
from holdfast.tools.registry import LOCAL_GROUPS
from holdfast.tools.table import TOOLS
from tests.helpers.agent import Agent, Reply
from tests.helpers.doors import MODERN_META, until
from tests.helpers.reviewer import with_settings
from tests.helpers.verbs import CHANGING, READING

pytestmark = [pytest.mark.timeout(120), pytest.mark.xdist_group("policy")]

SECRET = "SECRET-TOKEN-93417"
"""What every hidden file holds; no answer to the agent may hold it, nor any hidden name."""
HIDDEN_NAMES = ("hush", "vault", "buried")

RULES = [
    {"glob": "*.hush", "access": "deny"},
    {"glob": "vault/", "access": "deny"},
    {"glob": "fixed/**", "access": "read-only"},
    {"glob": "watched/**", "access": "review"},
    {"access": "read-only", "client": "reader-*"},
]


def plant_tree(root: Path) -> None:
    """Make a tree with hidden, read-only, reviewed and free files, and links onto the hidden ones."""
    for folder in ("vault/deep", "fixed", "watched", "free", "holder", "empty-looking"):
        (root / folder).mkdir(parents=True)
    for path in ("key.hush", "vault/buried.txt", "vault/deep/buried.json", "holder/key.hush", "empty-looking/x.hush"):
        (root / path).write_text(f'{{"token": "{SECRET}"}}\n')
    for folder in ("fixed", "watched", "free", "holder"):
        (root / folder / "a.txt").write_text("plain text about harbours\n")
    (root / "free" / "b.json").write_text('{"a": 1}\n')
    (root / "link-to-file").symlink_to("vault/buried.txt")
    (root / "link-to-folder").symlink_to("vault")
    (root / "link-absolute").symlink_to(root / "key.hush")


@dataclass
class Guarded:
    """A tree under the rules, and the settings that hold them."""

    root: Path
    state: Path
    settings: dict[str, Any] = field(default_factory=dict)

    def take_up(self, agent: Agent, rules: list[dict[str, Any]]) -> None:
        """Put rules in force, and wait until the running server has them."""
        marker = f"marker {time.monotonic_ns()}"
        (self.root / marker).write_text("there until the rules hold")
        with_settings(self.state, {**self.settings, "policy": {"rules": [*rules, {"glob": marker, "access": "deny"}]}})
        until("the rules hold", lambda: agent.call("read_text_file", path=marker).is_error)
        (self.root / marker).unlink()

    @contextmanager
    def agent(self, *options: str) -> Iterator[Agent]:
        """Connect as an ordinary client of the rules."""
        with Agent([self.root], self.state, options=options) as agent:
            yield agent

    @contextmanager
    def agent_named(self, name: str) -> Iterator[Agent]:
        """Connect as a client that calls itself so."""
        with Agent([self.root], self.state, name=name, version="1") as agent:
            yield agent


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Give the tree for tests that leave it as it is."""
    yield from make_guarded(tmp_path_factory.mktemp("policy"))


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Guarded]:
    """Give a tree of the test's own."""
    yield from make_guarded(tmp_path)


def make_guarded(folder: Path) -> Iterator[Guarded]:
    from tests.conftest import stop_server

    root, state = folder / "tree", folder / "state"
    root.mkdir()
    state.mkdir(mode=0o700)
    plant_tree(root)
    settings = {"policy": {"rules": RULES}, "folders": {"compat": True}, "organiser": {"require_approval": False}}
    with_settings(state, settings)
    yield Guarded(root, state, settings)
    stop_server(state)


def snapshot(root: Path) -> dict[str, bytes]:
    """Return every file, and every link as its text."""
    return {
        str(path.relative_to(root)): os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def is_silent(reply: Reply, *, asked: str = "") -> None:
    """Assert that an answer reveals nothing of what is hidden, but for the names that were asked for."""
    text = reply.text + json.dumps(reply.result.structured_content or {})
    for part in (asked, *asked.split("/")):
        text = text.replace(part, "") if part else text
    assert SECRET not in text
    for name in HIDDEN_NAMES:
        assert name not in text, f"{name} in {text[:400]}"


ELSEWHERE = {
    "list_allowed_directories": "names the roots alone",
    "mcp_pipe": "each step is a call of its own; see the test of pipes",
    "list_changes": "see the test of what was done before the rule",
    "undo_change": "see the test of what was done before the rule",
    "list_reviews": "see the test of what was done before the rule",
    "commit_review": "see the test of what was done before the rule",
    "get_plan": "see the test of the organiser",
    "list_plans": "see the test of the organiser",
    "revise_plan": "see the test of the organiser",
    "execute_plan": "see the test of the organiser",
    "undo_plan": "see the test of the organiser",
}
"""Tools that take no path, and where they are tested instead."""


@pytest.mark.req("RV-13.a")
def test_every_tool_for_agents_has_a_place_in_this_matrix() -> None:
    local = {tool.name for tool in TOOLS if tool.group in LOCAL_GROUPS and tool.audience is CallerKind.AGENT}
    assert {*READING, *CHANGING, *ELSEWHERE} == local | {"mcp_pipe"}


HIDDEN_PATHS = [
    "key.hush",
    "KEY.Hush",
    "vault",
    "vault/buried.txt",
    "vault/deep/buried.json",
    "VAULT/deep/buried.json",
    "vault/nothing-here",
    "free/../vault/buried.txt",
    "link-to-file",
    "link-absolute",
    "link-to-folder/deep/buried.json",
    "link-to-folder",
]


@pytest.mark.req("RV-13.b")
def test_what_is_denied_does_not_exist_for_any_tool_that_reads(guarded: Guarded) -> None:
    with guarded.agent() as agent:
        for name, arguments in READING.items():
            missing = agent.call(name, **arguments("no-such-thing"))
            for path in [*HIDDEN_PATHS, str(guarded.root / "vault" / "buried.txt")]:
                if name == "explain_file" and path in ("link-to-file", "link-absolute", "link-to-folder"):
                    continue  # it explains where the link is, which is no secret
                reply = agent.call(name, **arguments(path))
                is_silent(reply, asked=path)
                assert set(reply.refusals) <= {"NOT_FOUND"}, (name, path, reply.text)
                assert reply.is_error == missing.is_error, (name, path, reply.text)


@pytest.mark.req("RV-13.b")
def test_no_answer_about_the_tree_names_or_quotes_what_is_denied(guarded: Guarded) -> None:
    with guarded.agent() as agent:
        for name, arguments in READING.items():
            for path in (".", "holder", "empty-looking", "free"):
                is_silent(agent.call(name, **arguments(path)))
        for pattern in ("**/*.hush", "vault/**", "**/buried*", "*"):
            is_silent(agent.call("search_files", path=".", pattern=pattern), asked=pattern)
        for include_ignored in (False, True):
            grep = {"search_path": ".", "pattern": SECRET[:6], "include_ignored": include_ignored}
            is_silent(agent.call("grep_content", **grep))
        info = agent.call("get_file_info", path="empty-looking").ok().data
        assert info["entries"] == 0
        assert "a.txt" in agent.call("search_files", path=".", pattern="**/*.txt").text


@pytest.mark.req("RV-13.b", "RV-13.c")
def test_no_tool_changes_what_is_denied_or_read_only(guarded: Guarded) -> None:
    before = snapshot(guarded.root)
    with guarded.agent() as agent:
        for name, arguments in CHANGING.items():
            for path in [*HIDDEN_PATHS, "free/new.hush", "vault/new/deep.txt", "empty-looking/x.hush"]:
                if path.startswith("link") and "/" not in path and name in ("delete_file", "move_file"):
                    continue  # they act on the link, which is no secret
                reply = agent.call(name, **arguments(path))
                assert reply.refusals[0] in ("ACCESS_DENIED", "NOT_FOUND"), (name, path, reply.text)
                is_silent(reply, asked=path)
            fixed = "fixed/new" if name == "create_directory" else "fixed/a.txt"
            reply = agent.call(name, **arguments(fixed))
            assert reply.refusals[0] == "PERMISSION_DENIED", (name, reply.text)
            assert "settings policy rule 3" in reply.text, (name, reply.text)
        for source, target, code in [
            ("free/a.txt", "vault/a.txt", "ACCESS_DENIED"),
            ("free/a.txt", "free/a.hush", "ACCESS_DENIED"),
            ("free/a.txt", "fixed/b.txt", "PERMISSION_DENIED"),
            ("fixed", "free/fixed", "PERMISSION_DENIED"),
            ("holder", "free/holder", "ACCESS_DENIED"),
            ("empty-looking", "free/empty", "ACCESS_DENIED"),
        ]:
            reply = agent.call("move_file", source=source, destination=target)
            assert reply.code == code, (source, target, reply.text)
            is_silent(reply, asked=target)
        for path, code in [
            ("holder", "ACCESS_DENIED"),
            ("empty-looking", "ACCESS_DENIED"),
            ("fixed", "PERMISSION_DENIED"),
        ]:
            for recursive in (False, True):
                reply = agent.call("delete_file", path=path, recursive=recursive)
                assert reply.code == code, (path, reply.text)
                is_silent(reply)
        agent.call("read_text_file", path="fixed/a.txt").ok()
    after = snapshot(guarded.root)
    assert {name: data for name, data in after.items() if name in before} == before
    assert not [name for name in after if "new" in name]


@pytest.mark.req("RV-13.c")
def test_a_folder_cannot_be_moved_to_where_its_content_would_be_restricted(own: Guarded) -> None:
    (own.root / "free" / "fixed").mkdir()
    (own.root / "free" / "fixed" / "evil.txt").write_text("evil")
    with own.agent() as agent:
        own.take_up(agent, [{"glob": "place/fixed/**", "access": "read-only"}])
        reply = agent.call("move_file", source="free", destination="place")
        assert reply.code == "PERMISSION_DENIED", reply.text
        agent.call("move_file", source="free", destination="other").ok()


@pytest.mark.req("RV-13.d", "RV-13.a")
@pytest.mark.parametrize("proof", [None, "", "0" * 64, "agent.token"])
def test_no_connection_is_a_command_of_the_person_without_the_key(guarded: Guarded, proof: str | None) -> None:
    """A command is bound by no rule, so a program that says it is one must prove it."""
    hello = {"version": "0", "kind": "agent", "roots": [str(guarded.root)], "cwd": "/", "is_command": True}
    read = {"name": "read_text_file", "arguments": {"path": "key.hush"}, "_meta": MODERN_META}
    lines: list[dict[str, Any]] = [hello]
    if proof is not None:
        token = (guarded.state / proof).read_text().strip() if proof.endswith(".token") else proof
        lines.append({"proof": token})
    with guarded.agent() as agent, socket.socket(socket.AF_UNIX) as line:
        agent.call("list_allowed_directories").ok()
        line.settimeout(20)
        line.connect(str(guarded.state / "server.sock"))
        for message in [*lines, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": read}]:
            with suppress(BrokenPipeError):
                line.sendall(json.dumps(message).encode() + b"\n")
        with suppress(OSError):
            line.shutdown(socket.SHUT_WR)
        heard = b""
        with suppress(ConnectionResetError):
            while piece := line.recv(65_536):
                heard += piece
    assert SECRET.encode() not in heard
    assert b"The proof of person.key is wrong" in heard or heard.count(b"\n") == 1


@pytest.mark.req("RV-13.d")
def test_a_rule_for_a_client_binds_that_client_alone(own: Guarded) -> None:
    with own.agent() as agent:
        own.take_up(
            agent, [{"access": "deny", "client": "MC*", "glob": "free/"}, {"access": "deny", "client": "other*"}]
        )
        assert agent.call("read_text_file", path="free/a.txt").code == "NOT_FOUND"
        agent.call("write_file", path="fixed/a.txt", content="x").ok()
        own.take_up(agent, [{"access": "deny", "client": "other*"}])
        agent.call("read_text_file", path="free/a.txt").ok()


@pytest.mark.req("RV-13.e")
def test_the_strictest_rule_wins_and_a_running_server_takes_up_new_rules(own: Guarded) -> None:
    with own.agent() as agent:
        rules = [
            {"access": "allow", "glob": "free/**"},
            {"access": "read-only", "glob": "free/**"},
            {"access": "review", "glob": "**"},
            {"access": "deny", "glob": "free/secret*"},
        ]
        own.take_up(agent, rules)

        def codes() -> list[str]:
            paths = ("free/secret.txt", "free/x.txt")
            return [agent.call("write_file", path=path, content="y").code for path in paths]

        assert codes() == ["ACCESS_DENIED", "PERMISSION_DENIED"]
        assert "settings policy rule 2" in agent.call("write_file", path="free/x.txt", content="y").text
        (own.state / "settings.yml").write_text("settings: {policy: {rules: [{access: sometimes}]}}")
        time.sleep(1.0)  # longer than the server leaves between two looks at the file
        assert codes() == ["ACCESS_DENIED", "PERMISSION_DENIED"]
        (own.state / "settings.yml").unlink()
        time.sleep(1.0)
        assert codes() == ["ACCESS_DENIED", "PERMISSION_DENIED"]


@pytest.mark.req("RV-13.f")
def test_the_settings_file_in_a_served_folder_is_out_of_reach(tmp_path: Path) -> None:
    root, state = tmp_path / "root", tmp_path / "state"
    (root / "conf").mkdir(parents=True)
    state.mkdir(mode=0o700)
    settings = root / "conf" / "holdfast.yml"
    settings.write_text("settings: {}\n")
    (root / "link").symlink_to("conf/holdfast.yml")
    options = ["--in-process", "--settings", str(settings)]
    with Agent([root], state, options=options) as agent:
        for path in ("conf/holdfast.yml", "link", "conf/HOLDFAST.yml"):
            assert agent.call("read_text_file", path=path).code == "NOT_FOUND"
            assert agent.call("write_file", path=path, content="settings: {}").code == "ACCESS_DENIED"
            assert agent.call("delete_file", path=path).is_error or path == "link"
        assert agent.call("move_file", source="conf", destination="other").code == "ACCESS_DENIED"
        assert "holdfast.yml" not in agent.call("directory_tree", path=".").text.replace("link", "")
        assert agent.call("grep_content", search_path=".", pattern="settings").ok().text.count("holdfast.yml") == 0
    assert settings.read_text() == "settings: {}\n"


@pytest.mark.req("RV-13.b")
def test_what_was_done_and_indexed_before_a_rule_is_gone_with_it(own: Guarded) -> None:
    with own.agent() as agent:
        own.take_up(agent, [])
        agent.call("write_file", path="vault/buried.txt", content="the lighthouse keeper's password").ok()
        agent.call("write_file", path="free/c.txt", content="the lighthouse is open").ok()
        (change,) = [
            one["change_id"] for one in agent.call("list_changes").ok().data["changes"] if "buried" in one["path"]
        ]
        until("both are indexed", lambda: agent.call("search_folders", query="lighthouse").text.count(".txt") >= 2)
        proposed = agent.start(
            "propose_and_review",
            {"path": "vault/deep/buried.json", "edits": [{"old_string": "token", "new_string": "word"}]},
        )
        until("it is proposed", lambda: agent.call("list_reviews").data["reviews"])
        session = agent.call("list_reviews").data["reviews"][0]["session_path"]
        assert _is_indexed(own.state, "buried")
        own.take_up(agent, RULES)
        assert agent.call("read_text_file", path="vault/buried.txt").code == "NOT_FOUND"
        is_silent(agent.call("list_changes").ok())
        assert agent.call("undo_change", change_id=change).code == "NOT_FOUND"
        is_silent(agent.call("list_reviews").ok())
        commit = agent.call("commit_review", session_path=session, original_path="vault/deep/buried.json")
        assert commit.code == "NOT_FOUND"
        answer = agent.call("search_folders", query="lighthouse keeper password").ok()
        is_silent(answer)
        assert "free/c.txt" in answer.text
        until("the index has dropped it", lambda: not _is_indexed(own.state, "buried"))
        proposed.cancel()


def _is_indexed(state: Path, text: str) -> bool:
    for index in (state / "folders").glob("*.db"):
        with closing(sqlite3.connect(f"file:{index}?mode=ro", uri=True)) as database:
            if any(text in line for line in database.iterdump()):
                return True
    return False


@pytest.mark.req("RV-13.b", "RV-13.c")
def test_the_organiser_sees_and_moves_nothing_that_is_restricted(own: Guarded) -> None:
    for folder in ("Invoices", "Letters"):
        (own.root / folder).mkdir()
        for number in range(6):
            (own.root / folder / f"{folder} {number}.txt").write_text(f"{folder} about money and paper {number}\n")
    for number in range(3):
        (own.root / f"Invoices extra {number}.txt").write_text("Invoices about money and paper\n")
    (own.root / "Invoices secret.hush").write_text(SECRET)
    with own.agent() as agent:
        plan = agent.call("create_organization_plan", folder_path=".").ok()
        is_silent(plan)
        plan_id = plan.data["plan_id"]
        for show in ("moves", "uncertain", "skipped"):
            is_silent(agent.call("get_plan", plan_id=plan_id, show=show))
        is_silent(agent.call("list_plans"))
        rules = [{"glob": "Invoices extra*", "access": "read-only"}, *RULES]
        own.take_up(agent, rules)
        executed = agent.call("execute_plan", plan_id=plan_id)
        if plan.data["totals"].get("moves"):
            assert executed.code == "PERMISSION_DENIED", executed.text
    assert (own.root / "Invoices extra 0.txt").exists()
    assert (own.root / "Invoices secret.hush").read_text() == SECRET


@pytest.mark.req("RV-13.b", "RV-13.c")
def test_the_steps_of_a_pipe_are_bound_as_calls_are(guarded: Guarded) -> None:
    steps = [
        {"id": "a", "tool": "read_text_file", "arguments": {"path": "key.hush"}},
        {"id": "b", "tool": "write_file", "arguments": {"path": "fixed/a.txt", "content": "x"}},
        {"id": "c", "tool": "list_directory", "arguments": {"path": "."}},
    ]
    with guarded.agent() as agent:
        reply = agent.call("mcp_pipe", steps=steps)
        is_silent(reply, asked="key.hush")
        assert "NOT_FOUND" in reply.text
        assert "PERMISSION_DENIED" in reply.text


@pytest.mark.req("RV-13.b")
def test_no_race_reaches_a_denied_file(own: Guarded, attack_seconds: float) -> None:
    """A link swapped onto a denied file, and a denied file renamed while it is listed."""
    swap, stop = own.root / "swap", threading.Event()
    (own.root / "plain").write_text("plain")
    (own.root / "dir").mkdir()
    (own.root / "dir" / "buried.txt").write_text("decoy")

    def keep_swapping() -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            for link, target in (("swap", ("plain", "key.hush")[turn % 2]), ("dirswap", ("dir", "vault")[turn % 2])):
                (own.root / f".{link}").symlink_to(target)
                os.replace(own.root / f".{link}", own.root / link)
            old, new = ("key2.hush", "other.hush") if turn % 2 else ("other.hush", "key2.hush")
            if (own.root / old).exists():
                os.rename(own.root / old, own.root / new)

    swap.symlink_to("plain")
    (own.root / "dirswap").symlink_to("dir")
    (own.root / "key2.hush").write_text(SECRET)
    swapper = threading.Thread(target=keep_swapping)
    swapper.start()
    try:
        with own.agent() as agent:
            until_at = time.monotonic() + attack_seconds
            rounds = 0
            while time.monotonic() < until_at:
                rounds += 1
                for reply in agent.parallel(
                    [
                        ("read_text_file", {"path": "swap"}),
                        ("read_text_file", {"path": "dirswap/buried.txt"}),
                        ("grep_content", {"search_path": ".", "pattern": SECRET}),
                        ("grep_content", {"search_path": "swap", "pattern": "TOKEN"}),
                        ("list_directory", {"path": "."}),
                        ("append_text", {"path": "swap", "content": "!"}),
                    ]
                ):
                    assert SECRET not in reply.text.replace(f"for {SECRET}", "")
                    assert ".hush" not in reply.text
    finally:
        stop.set()
        swapper.join()
    assert rounds
    assert SECRET in (own.root / "key.hush").read_text()
    assert "!" not in (own.root / "key.hush").read_text()


@pytest.mark.req("RV-13.b", "RV-13.c")
def test_a_rule_that_leads_through_a_link_holds_for_what_the_link_leads_to(own: Guarded) -> None:
    for folder in ("y2026", "y2025", "shelf"):
        (own.root / folder).mkdir()
        (own.root / folder / "a.txt").write_text(SECRET)
    (own.root / "current").symlink_to("y2026")
    (own.root / "chain").symlink_to("current")
    (own.root / "shelf" / "last").symlink_to(own.root / "y2025")
    with own.agent() as agent:
        own.take_up(
            agent,
            [
                {"glob": "chain/**", "access": "deny"},
                {"root": str(own.root / "shelf"), "glob": "last/*.txt", "access": "deny"},
                {"glob": "/link-to-folder/deep", "access": "read-only"},
            ],
        )
        for path in ("chain/a.txt", "current/a.txt", "y2026/a.txt", "shelf/last/a.txt", "y2025/a.txt"):
            reply = agent.call("read_text_file", path=path)
            assert json.loads(reply.text)["code"] == "NOT_FOUND", reply.text
        assert agent.call("read_text_file", path="shelf/a.txt").ok().text == SECRET
        found = agent.call("grep_content", search_path=".", pattern=SECRET).text
        assert not any(folder in found for folder in ("y2026", "y2025"))
        assert agent.call("write_file", path="vault/deep/new.txt", content="x").is_error
        assert not (own.root / "vault/deep/new.txt").exists()
