"""What happens to reviews, changes and plans is told in the bulletin, by the parts that do it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.auth.context import LOCAL_USER, Caller, CallerKind, ClientInfo
from holdfast.bulletin import NewsKind
from holdfast.config.settings import Settings
from holdfast.wiring.build import build
from holdfast.wiring.server_parts import ServerParts
from tests.helpers.organising import HOUSE
from tests.helpers.trees import plant


class Server:
    """The parts of a server, called without a door."""

    def __init__(self, parts: ServerParts, root: Path) -> None:
        self.parts, self.root = parts, root
        self.seq = 0

    def call(self, kind: CallerKind, tool: str, **arguments: Any) -> dict[str, Any]:
        roots = (str(self.root),) if kind is CallerKind.AGENT else ()
        caller = Caller(LOCAL_USER, kind, roots, client=ClientInfo("test", "1", is_command=kind is CallerKind.PERSON))
        answer = asyncio.run(self.parts.dispatcher.call(caller, tool, arguments))
        return answer.data.model_dump() if answer.data is not None else {}

    def agent(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.call(CallerKind.AGENT, tool, **arguments)

    def person(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.call(CallerKind.PERSON, tool, **arguments)

    def news(self) -> list[tuple[str, Any]]:
        """Return what was told since the last look, without progress: the kind, and the status or action."""
        bulletin = self.parts.app.bulletin
        entries = bulletin.read_after(self.seq) or []
        self.seq = bulletin.newest_seq
        return [
            (entry.kind.value, entry.fields.get("status") or entry.fields.get("action"))
            for entry in entries
            if entry.kind is not NewsKind.PLAN_PROGRESS
        ]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Give the parts of a server on a state folder of its own."""
    (tmp_path / "project").mkdir()
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    settings = Settings.model_validate(
        {"review": {"wait_seconds": 0.05}, "mcp": {"files": {"search": {"embedder": {"kind": "none"}}}}}
    )
    parts = build(settings, str(state))
    try:
        yield Server(parts, tmp_path / "project")
    finally:
        parts.close()


def test_a_review_is_told_when_it_opens_changes_and_becomes_a_change(server: Server) -> None:
    (server.root / "a.txt").write_text("one\n")
    session = server.agent("propose_and_review", path="a.txt", old_string="one", new_string="two")["session_path"]
    assert server.news() == [("review.opened", "PENDING")]
    (review,) = server.person("pending_reviews")["reviews"]
    shown = server.person("show_review", review_id=review["review_id"])
    server.person("decide_review", review_id=review["review_id"], shown_hash=shown["shown_hash"], decision="approve")
    assert server.news() == [("review.changed", "APPROVE")]

    server.agent("commit_review", session_path=session, original_path="a.txt")

    assert server.news() == [("change.made", "EXECUTED"), ("review.applied", "APPROVE")]
    server.agent("propose_and_review", path="a.txt", old_string="two", new_string="three")
    (review,) = server.person("pending_reviews")["reviews"]
    server.person("withdraw_review", review_id=review["review_id"])
    assert server.news() == [("review.opened", "PENDING"), ("review.changed", "REJECT")]


def test_every_change_of_a_file_and_its_undo_is_told(server: Server) -> None:
    server.agent("write_file", path="a.txt", content="one\n")
    assert server.news() == [("change.made", "EXECUTED")]
    (change,) = server.person("all_changes")["changes"]
    server.person("undo_for_person", change_id=change["change_id"])
    assert server.news() == [("change.made", "EXECUTED")]


def test_a_plan_is_told_from_its_scan_to_its_undo(server: Server) -> None:
    plant(server.root, HOUSE)
    plan = server.agent("create_organization_plan", folder_path=".")
    assert server.news() == [("plan.changed", "CREATED")]
    page = server.person("plan_rows", plan_id=plan["plan_id"])
    server.person("approve_plan", plan_id=plan["plan_id"], plan_hash=page["plan_hash"])
    server.person("execute_plan_for_person", plan_id=plan["plan_id"])
    assert server.news() == [
        ("plan.changed", "APPROVED"),
        ("plan.changed", "RUNNING"),
        ("plan.changed", "EXECUTED"),
        ("change.made", "EXECUTED"),
    ]
    server.person("undo_plan_items", plan_id=plan["plan_id"])
    assert server.news() == [("plan.changed", "UNDONE"), ("change.made", "UNDONE")]


def test_the_progress_of_a_scan_and_of_an_execution_is_told(server: Server) -> None:
    plant(server.root, HOUSE)
    told: list[dict[str, Any]] = []
    bulletin = server.parts.app.bulletin

    def listen() -> None:
        entries = bulletin.read_after(bulletin.newest_seq - 1) or []
        told.extend(dict(entry.fields) for entry in entries if entry.kind is NewsKind.PLAN_PROGRESS)

    with bulletin.subscribe(listen):
        plan = server.agent("create_organization_plan", folder_path=".")
        page = server.person("plan_rows", plan_id=plan["plan_id"])
        server.person("approve_plan", plan_id=plan["plan_id"], plan_hash=page["plan_hash"])
        server.person("execute_plan_for_person", plan_id=plan["plan_id"])

    assert {entry["phase"] for entry in told} == {"scan", "execute"}
    assert {entry["plan_id"] for entry in told} == {plan["plan_id"]}
    assert told[-1]["done"] == told[-1]["total"]


def test_no_news_holds_a_path_or_a_text(server: Server) -> None:
    server.agent("write_file", path="CANARY.txt", content="CANARY")
    server.agent("propose_and_review", path="CANARY.txt", old_string="CANARY", new_string="b", note="CANARY")

    entries = server.parts.app.bulletin.read_after(0) or []

    assert len(entries) == 2
    assert "CANARY" not in str([dict(entry.fields) for entry in entries])
