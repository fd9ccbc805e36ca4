"""What could not be read is said, by name and with its reason; a reader's fault is not the file's; no text outlives a file."""

import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import documents
from tests.helpers.agent import Agent
from tests.helpers.doors import House, until
from tests.helpers.organising import HOUSE, INVOICE, RECIPE, Tidier, organise, organised, tidying
from tests.helpers.readers import package_without_readers
from tests.helpers.trees import plant

UNREAD = "could not be read because of a temporary error"


@contextmanager
def leased(path: Path) -> Iterator[None]:
    """Make a file that nobody can open, the system's owner neither: a program holds it and does not let go."""
    fd = os.open(path, os.O_RDWR)
    try:
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield
    finally:
        os.close(fd)


@contextmanager
def ended(house: House) -> Iterator[None]:
    """End the server that a client starts meanwhile."""
    try:
        yield
    finally:
        house.end()


def uncertain(tidier: Tidier, plan: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = tidier.agent.call("get_plan", plan_id=plan["plan_id"], show="uncertain").ok().data["uncertain"]
    return {one["path"]: one for one in found}


@pytest.mark.req("OR-13.c", "SE-50.k")
@pytest.mark.timeout(240)
def test_a_reader_that_cannot_start_is_no_fault_of_the_files(tmp_path: Path) -> None:
    house = House(tmp_path, **package_without_readers(tmp_path / "copy"))
    root = house.root
    plant(root, {"Recipes": {f"cake{number}.txt": RECIPE.format(number) for number in range(3)}})
    (root / "Invoices").mkdir()
    for number in range(3):
        (root / f"Invoices/bill{number}.pdf").write_bytes(documents.pdf(INVOICE.format(number).strip()))
    (root / "scan.pdf").write_bytes(documents.pdf(INVOICE.format(9).strip()))
    with house.serve(str(root)), tidying(root, house.state) as tidier:
        plan = tidier.plan()
        assert plan["remark"] == f"4 files {UNREAD}; the next scan tries again."
        assert "Its text was not read: its reader could not start." in uncertain(tidier, plan)["scan.pdf"]["why"]
        assert "scan.pdf" not in tidier.moves(plan)
        until("the index is made", lambda: UNREAD in searched(tidier.agent), 60)
    with ended(house), tidying(root, house.state) as tidier:
        plan = tidier.plan()
        assert "remark" not in plan
        assert tidier.moves(plan)["scan.pdf"] == "Invoices/scan.pdf"
        until("the index is made", lambda: "bill1.pdf" in searched(tidier.agent), 60)
        assert UNREAD not in searched(tidier.agent)


def searched(agent: Agent) -> str:
    return agent.call("search_folders", query="invoice amount").ok().text


@pytest.mark.req("OR-13.b")
def test_a_damaged_document_says_so_in_the_plan_and_when_it_is_explained(root: Path, ended_state: Path) -> None:
    plant(root, HOUSE)
    (root / "qqq.pdf").write_bytes(documents.pdf()[:80])
    (root / "www.docx").write_bytes(documents.word()[:3000])
    with tidying(root, ended_state) as tidier:
        plan = tidier.plan()
        found = uncertain(tidier, plan)
        assert "Its text was not read: it is damaged" in found["qqq.pdf"]["why"]
        assert "Its text was not read: it is a damaged archive." in found["www.docx"]["why"]
        again = uncertain(tidier, tidier.plan())
        assert again["qqq.pdf"]["why"] == found["qqq.pdf"]["why"]
        assert "it is damaged" in tidier.agent.call("explain_file", path=str(root / "qqq.pdf")).ok().text
    assert "it is damaged" in organise(ended_state, "show", plan["plan_id"], "--all").stdout
    assert "it is a damaged archive" in organise(ended_state, "explain", str(root / "www.docx")).stdout


@pytest.mark.req("OR-05.b", "OR-05.e")
def test_files_that_cannot_be_read_are_listed_by_name_and_explained(root: Path, ended_state: Path) -> None:
    plant(root, {**HOUSE, ".hidden": "h", "locked.txt": "l", "Recipes/locked too.txt": "l"})
    with leased(root / "locked.txt"), leased(root / "Recipes/locked too.txt"), tidying(root, ended_state) as tidier:
        plan = tidier.plan()
        assert plan["skipped"] == {"cannot be read": 2, "hidden": 1}
        left = tidier.agent.call("get_plan", plan_id=plan["plan_id"], show="skipped").ok().data["left_alone"]
        why = "cannot be read: Resource temporarily unavailable"
        assert [one["path"] for one in left] == ["locked.txt", "Recipes/locked too.txt", ".hidden"]
        assert [one["why"] for one in left] == [why, why, "hidden"]
    shown = organise(ended_state, "show", plan["plan_id"], "--all").stdout.splitlines()
    assert f"  locked.txt              {why}" in shown
    assert f"  Recipes/locked too.txt  {why}" in shown
    assert "locked.txt" not in organise(ended_state, "show", plan["plan_id"]).stdout
    told = organised(ended_state, "explain", str(root / "locked.txt"))
    assert told["why"] == f"The plan skipped locked.txt: {why}."
    assert organised(ended_state, "explain", str(root / ".hidden"))["why"] == "The plan skipped .hidden: hidden."


@pytest.mark.req("OR-21.e")
def test_an_excerpt_is_shown_only_while_its_file_is_what_was_read(root: Path, state_dir: Path) -> None:
    strange = "{0} quite another thing altogether, about the quantum harmonic oscillators of physics and of fields\n"
    plant(root, {**HOUSE, **{f"{name}.txt": strange.format(name) for name in ("gone", "other", "same")}})
    with tidying(root, state_dir) as tidier:
        plan = tidier.plan()
        assert {"gone.txt", "other.txt", "same.txt"} <= uncertain(tidier, plan).keys()
        (root / "gone.txt").unlink()
        (root / "other.txt").write_text("harmless")
        found = uncertain(tidier, plan)
        assert "excerpt" not in found["gone.txt"]
        assert found["gone.txt"]["why"] == "It was removed since the plan was made."
        assert "excerpt" not in found["other.txt"]
        assert found["other.txt"]["why"].startswith("It changed since the plan was made")
        assert found["same.txt"]["excerpt"] == strange.format("same").strip()
        assert "quantum" not in tidier.agent.call("explain_file", path=str(root / "other.txt")).ok().text


@pytest.mark.req("OR-24.b")
def test_a_type_that_holds_anything_does_not_pass_the_gate(root: Path, state_dir: Path) -> None:
    plant(
        root,
        {
            "Recipes": {f"r{number}.txt": RECIPE.format(number) for number in range(3)},
            "Covers": {f"c{number}.jpg": f"\xff\xd8\xff{number}" for number in range(3)},
            "passwords.txt": "gmail hunter2",
            "wifi.txt": "key 1234",
            "empty.txt": "",
            "new.jpg": "\xff\xd8\xffnew",
        },
    )
    with tidying(root, state_dir) as tidier:
        plan = tidier.plan()
        assert tidier.moves(plan) == {"new.jpg": "Covers/new.jpg"}
        found = uncertain(tidier, plan)
        assert {name for name in found if found[name].get("confidence", 0) < 0.3} == {
            "passwords.txt",
            "wifi.txt",
            "empty.txt",
        }
