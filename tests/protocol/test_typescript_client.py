"""The official TypeScript clients, old and new, in both eras, through the relay and over HTTP."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.protocol import node
from tests.protocol.conftest import Served

CLIENTS = [("client", "modern"), ("client", "legacy"), ("sdk", "legacy")]
DOORS = ["stdio", "http"]
each_client = pytest.mark.parametrize(("library", "era"), CLIENTS)
each_door = pytest.mark.parametrize("door", DOORS)


def door_of(kind: str, served: Served, options: Sequence[str] = (), query: str = "") -> dict[str, Any]:
    """Return how a script reaches a server, with options of the relay or the query of the address."""
    if kind == "http":
        return {"kind": kind, "url": f"{served.url}/mcp{query}", "key": served.key}
    environment = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    return {
        "kind": kind,
        "command": sys.executable,
        "args": ["-m", "holdfast", "stdio", *options, str(served.root)],
        "env": {**environment, "HOLDFAST_STATE_DIR": str(served.state)},
    }


@pytest.mark.req("SV-04.a", "SV-01.a", "SV-02.a")
@each_door
@each_client
def test_a_typescript_client_reads_edits_and_is_told_of_a_missing_file(
    served: Served, library: str, era: str, door: str
) -> None:
    file = served.root / f"Notiz {library} {era} {door}.txt"
    file.write_text("Grüße von draußen\n")
    parameters = {"scenario": "files", "path": file.name, "missing": f"no {file.name}"}
    report = node.script("client.mjs", {"library": library, "era": era, "door": door_of(door, served), **parameters})
    assert report["server"] == "holdfast"
    assert report["version"] in ({"2026-07-28"} if era == "modern" else {"2025-11-25", None})
    assert {"read_text_file", "edit_file", "write_file"} <= set(report["tools"])
    assert report["first"] == "Grüße von draußen\n"
    assert not report["edited"]["isError"]
    assert report["second"] == file.read_text() == "Grüße von drinnen 🎉\n"
    assert report["missing"] == {"isError": True, "code": "NOT_FOUND"}


@pytest.mark.req("SV-06.e", "FS-05.c")
@each_door
@each_client
def test_a_typescript_client_that_gave_up_rights_has_fewer_tools_and_no_others(
    served: Served, library: str, era: str, door: str
) -> None:
    way = door_of(door, served, ["--read-only", "--tools", "files"], "?tools=files&read_only=1")
    calls = [["write_file", {"path": "x.txt", "content": "x"}], ["list_reviews", {}], ["list_allowed_directories", {}]]
    parameters = {"library": library, "era": era, "door": way, "scenario": "names", "calls": calls}
    report = node.script("client.mjs", parameters)
    assert {"read_text_file", "list_changes", "mcp_pipe"} <= set(report["tools"])
    assert not {"write_file", "undo_change", "list_reviews", "get_plan", "search_folders"} & set(report["tools"])
    assert [outcome["code"] for outcome in report["outcomes"]] == ["PERMISSION_DENIED", "PERMISSION_DENIED", None]
    assert not (served.root / "x.txt").exists()


@pytest.mark.req("SV-04.a", "FS-19")
@each_door
@each_client
def test_a_typescript_client_sees_progress_stops_work_and_takes_a_large_answer(
    conformance_build: Served, library: str, era: str, door: str
) -> None:
    parameters = {"scenario": "long", "label": uuid4().hex, "characters": 2_000_000}
    way = door_of(door, conformance_build)
    report = node.script("client.mjs", {"library": library, "era": era, "door": way, **parameters})
    assert report["seen"] == [0, 50, 100]
    assert report["told"] == "Progress was told."
    assert (report["outcome"], report["stopped"]) == ("cancelled", "stopped")
    assert report["characters"] == 2_000_000


@pytest.mark.req("SV-04.a")
@each_door
def test_a_typescript_client_that_probes_finds_the_newest_era(served: Served, door: str) -> None:
    file = served.root / f"probe {door}.txt"
    file.write_text("draußen\n")
    parameters = {"library": "client", "era": "auto", "door": door_of(door, served), "scenario": "files"}
    report = node.script("client.mjs", {**parameters, "path": file.name, "missing": "none.txt"})
    assert report["version"] == "2026-07-28"


@pytest.mark.req("SV-04.c")
@each_door
@each_client
def test_a_typescript_client_asks_its_person(conformance_build: Served, library: str, era: str, door: str) -> None:
    actions = ["accept", "decline", "cancel", *(["wait"] if era == "legacy" else [])]
    labels = [f"{action} {uuid4().hex}" for action in actions]
    parameters = {"scenario": "ask", "labels": labels, "door": door_of(door, conformance_build)}
    report = node.script("client.mjs", {"library": library, "era": era, **parameters})
    assert report["asked"] == [f"May it be? ({label})" for label in labels]
    assert report["texts"][:3] == [
        'Elicitation completed: action=accept, content={"decision": "approve", "comment": "nat\\u00fcrlich"}',
        "Elicitation completed: action=decline, content={}",
        "Elicitation completed: action=cancel, content={}",
    ]
    assert report["texts"][3:] == (["given up"] if era == "legacy" else [])
    assert report["withdrawn"] == (1 if era == "legacy" else 0)


@pytest.mark.req("SV-02.k")
@pytest.mark.parametrize("library", ["client", "sdk"])
def test_a_typescript_client_that_declares_roots_is_served_them(served: Served, library: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "zweite Mappe"
    first.mkdir()
    second.mkdir()
    door = door_of("stdio", served)
    door["args"] = door["args"][:-1]
    parameters = {"scenario": "roots", "first": [first.as_uri()], "second": [second.as_uri(), first.as_uri()]}
    report = node.script("client.mjs", {"library": library, "era": "legacy", "door": door, **parameters})
    assert str(first) in report["first"]
    assert str(second) not in report["first"]
    assert report["second"].index(str(second)) < report["second"].index(str(first))
