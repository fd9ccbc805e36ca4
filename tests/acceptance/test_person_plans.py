"""The person's tools for plans: a folder is chosen, scanned, looked at by page, corrected, carried out, and taken back."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.agent import Agent
from tests.helpers.doors import House, until
from tests.helpers.organising import HOUSE, INVOICE, RECIPE
from tests.helpers.person import Person
from tests.helpers.trees import harvest, plant

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Give a home folder with a messy folder in it, which no agent was given."""
    place = tmp_path / "home"
    place.mkdir()
    plant(
        place, {"Downloads": HOUSE, "Documents": {"private": {"a.txt": "CANARY"}}, ".secret": {"k": "1"}, "f.txt": "1"}
    )
    return place


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Give a house; its server ends with the test."""
    made = House(tmp_path)
    yield made
    made.run("stop")
    made.end()


@pytest.fixture
def person(home: Path, house: House) -> Iterator[Person]:
    """Give the person of a server whose only agent works elsewhere."""
    with Agent([house.root], house.state, env={"HOME": str(home)}) as agent:
        agent.call("list_allowed_directories").ok()
        yield Person(house.state)


def scanned(person: Person, folder: Path, **arguments: Any) -> dict[str, Any]:
    """Scan a folder to the end and return the first rows of its plan."""
    scan = person.call("start_scan", directory=str(folder), **arguments)

    def is_made() -> bool:
        running = person.call("running_scans")
        assert running["failed"] == []
        return scan["plan_id"] not in [other["plan_id"] for other in running["scans"]]

    until("the plan is made", is_made, seconds=60)
    return person.call("plan_rows", plan_id=scan["plan_id"], view="all")


def where(page: dict[str, Any]) -> dict[str, str]:
    return {row["path"]: row.get("destination", row["status"]) for row in page["rows"]}


@pytest.mark.req("SV-42.a")
def test_a_folder_is_chosen_by_the_names_of_directories_in_the_home_folder_alone(person: Person, home: Path) -> None:
    top = person.call("list_directories")
    assert top == {
        "path": str(home),
        "directories": [
            {"name": "Documents", "path": f"{home}/Documents"},
            {"name": "Downloads", "path": f"{home}/Downloads"},
        ],
        "is_cut": False,
    }
    below = person.call("list_directories", path=f"{home}/Documents")
    assert (below["above"], [row["name"] for row in below["directories"]]) == (str(home), ["private"])
    assert ".secret" in [row["name"] for row in person.call("list_directories", with_hidden=True)["directories"]]
    (home / "door").symlink_to("/etc")
    for path in ("/etc", f"{home}/..", f"{home}/door", f"{home}/../..", "etc", f"{home.parent}/home2"):
        assert person.refused("list_directories", path=path)["code"] in ("ACCESS_DENIED", "NOT_FOUND", "INVALID_PATH")
    assert person.refused("browse_folder", path=f"{home}/Documents")["code"] == "ACCESS_DENIED"


@pytest.mark.req("SV-42.a")
def test_only_folders_of_the_home_folder_or_known_ones_are_scanned(person: Person, home: Path, tmp_path: Path) -> None:
    plant(tmp_path, {"elsewhere": {"a.txt": "a"}})
    (home / "door").symlink_to(tmp_path / "elsewhere")
    for path in (str(tmp_path / "elsewhere"), "/etc", str(home / "door"), f"{home}/../elsewhere", str(home)):
        assert person.refused("start_scan", directory=path)["code"] in ("ACCESS_DENIED", "PERMISSION_DENIED"), path
    assert person.call("running_scans")["scans"] == []


@pytest.mark.req("SV-42.b")
def test_a_plan_is_scanned_corrected_carried_out_and_taken_back_in_part(person: Person, home: Path) -> None:
    folder = home / "Downloads"
    original = harvest(folder)
    page = scanned(person, folder)
    assert where(page)["scan_0012.txt"] == "Invoices/scan_0012.txt"
    assert where(page)["pasta.txt"] == "Recipes/pasta.txt"
    assert page["status"] == "CREATED"
    assert sorted(page["shelves"])[:2] == ["Invoices", "Recipes"] or {"Invoices", "Recipes"} <= set(page["shelves"])
    plan = {"plan_id": page["plan_id"]}

    corrected = person.call("correct_plan", **plan, changes=[{"path": "pasta.txt", "folder": "Dinner"}])
    assert {"path": "pasta.txt", "before": "Recipes/pasta.txt", "to": "Dinner/pasta.txt"} in corrected["changed"]
    assert corrected["changed_count"] == len(corrected["changed"])
    page = person.call("plan_rows", **plan, view="moves")
    (row,) = [row for row in page["rows"] if row["path"] == "pasta.txt"]
    assert (row["folder"], row["is_new_folder"], row["was_corrected"]) == ("Dinner", True, True)
    assert harvest(folder) == original

    assert person.refused("execute_plan_for_person", **plan)["code"] == "PERMISSION_DENIED"
    assert person.refused("approve_plan", **plan, plan_hash="0" * 64)["code"] == "CONFLICT"
    person.call("approve_plan", **plan, plan_hash=page["plan_hash"])
    done = person.call("execute_plan_for_person", **plan)
    assert done["status"] == "EXECUTED"
    assert (folder / "Dinner" / "pasta.txt").exists()
    assert person.call("execute_plan_for_person", **plan)["status"] == "EXECUTED"

    back = person.call("undo_plan_items", **plan, item_ids=[row["item_id"]])
    assert (back["came_back"], back["stayed"]) == (1, 0)
    assert (folder / "pasta.txt").exists()
    assert (folder / "Invoices" / "scan_0012.txt").exists()
    page = person.call("plan_rows", **plan, filter="PASTA")
    assert [row["status"] for row in page["rows"]] == ["UNDONE"]
    assert person.refused("undo_plan_items", **plan, item_ids=[4711])["code"] == "INVALID_ARGUMENT"
    person.call("undo_plan_items", **plan)
    assert harvest(folder) == original
    assert str(folder) in [root["path"] for root in person.call("known_roots")["roots"]]


@pytest.mark.req("SV-42.b")
def test_what_stays_is_listed_with_the_reason_and_can_be_decided_on_again(person: Person, home: Path) -> None:
    folder = home / "Downloads"
    plant(folder, {".hidden": "x"})
    plan = {"plan_id": scanned(person, folder)["plan_id"]}
    person.call("correct_plan", **plan, changes=[{"path": "pasta.txt"}])
    (row,) = person.call("plan_rows", **plan, view="left_alone")["rows"]
    assert (row["path"], row["status"], row["was_corrected"]) == ("pasta.txt", "LEFT_ALONE", True)
    skipped = person.call("plan_rows", **plan, view="skipped")
    assert [(entry["path"], entry["reason"]) for entry in skipped["rows"]] == [(".hidden", "hidden")]
    assert skipped["counts"]["skipped"] == skipped["counts"]["left_alone"] == 1

    person.call("correct_plan", **plan, changes=[{"path": "pasta.txt", "folder": "Recipes"}])
    page = person.call("plan_rows", **plan, view="all")
    assert page["counts"]["left_alone"] == 0
    before = person.call("plan_rows", **plan, view="all", side="before")
    assert [(entry["folder"], entry["files"]) for entry in before["folders"]] == [("", page["total"])]
    after = person.call("plan_rows", **plan, view="all", side="after", folder="Recipes")
    assert [row["path"] for row in after["rows"]] == ["pasta.txt"]
    stays = person.call("plan_rows", **plan, view="all", side="after", folder="")
    assert {row["path"] for row in stays["rows"]} == {
        row["path"] for row in page["rows"] if row.get("destination") is None
    }


@pytest.mark.req("SV-42.b")
def test_a_file_of_a_plan_is_explained_and_a_plan_says_what_changed_since(person: Person, home: Path) -> None:
    folder = home / "Downloads"
    plant(folder, {"more.txt": INVOICE.format(88)})
    page = scanned(person, folder)
    plan = {"plan_id": page["plan_id"]}
    told = person.call("explain_plan_file", **plan, address="scan_0012.txt")
    assert (told["waiting_to"], told["category"]) == (f"{folder}/Invoices/scan_0012.txt", "Invoices")
    assert told["nearest"]
    assert person.refused("explain_plan_file", **plan, address=f"{home}/f.txt")["code"] == "ACCESS_DENIED"
    assert person.refused("explain_plan_file", **plan, address="../f.txt")["code"] == "ACCESS_DENIED"
    fresh = person.call("plan_freshness", **plan)
    assert fresh == {"missing": 0, "changed": 0, "examples": []}

    (folder / "pasta.txt").unlink()
    (folder / "more.txt").write_text("something else")
    scan = scanned(person, folder)
    fresh = person.call("plan_freshness", **plan)
    assert (fresh["missing"], fresh["changed"], sorted(fresh["examples"])) == (1, 1, ["more.txt", "pasta.txt"])
    assert fresh["newer_plan"] == scan["plan_id"]

    person.call("approve_plan", **plan, plan_hash=person.call("plan_rows", **plan)["plan_hash"])
    assert person.call("execute_plan_for_person", **plan)["totals"]["DONE"] == page["counts"]["moves"] - 2
    stayed = person.call("plan_rows", **plan, view="stayed")
    assert sorted(row["path"] for row in stayed["rows"]) == ["more.txt", "pasta.txt"]
    assert all(row["error"] for row in stayed["rows"])
    assert [total["done"] for total in stayed["folders"] if total["folder"] == "Invoices"] == [1]

    past = person.call("plan_measures", **plan)["plans"]
    assert [entry["plan_id"] for entry in past] == [plan["plan_id"], scan["plan_id"]]
    assert past[1]["measures"]["cache_hit_rate"] > past[0]["measures"]["cache_hit_rate"]


@pytest.mark.req("SV-42.b")
def test_a_file_whose_name_is_not_utf8_is_corrected_by_its_address(person: Person, home: Path) -> None:
    folder = home / "Downloads"
    Path(os.fsdecode(bytes(folder) + b"/caf\xe9 bill.txt")).write_text(INVOICE.format(99))
    page = scanned(person, folder)
    (row,) = [row for row in page["rows"] if "bill" in row["name"]]
    assert row["address"].startswith("file:///")
    plan = {"plan_id": page["plan_id"]}
    person.call("correct_plan", **plan, changes=[{"path": row["address"], "folder": "Taxes"}])
    taxes = person.call("plan_rows", **plan, folder="Taxes")["rows"]
    assert "caf\ufffd bill.txt" in [row["name"] for row in taxes]


@pytest.mark.req("SV-42.b")
def test_a_large_plan_comes_by_page_view_folder_and_filter(person: Person, home: Path) -> None:
    folder = home / "Downloads"
    plant(folder, {f"bill {number:04}.txt": INVOICE.format(number + 100) for number in range(150)})
    plant(folder, {f"cake {number:04}.txt": RECIPE.format(number + 100) for number in range(50)})
    page = scanned(person, folder)
    plan = {"plan_id": page["plan_id"]}
    moves = person.call("plan_rows", **plan, view="moves", limit=2_000)
    assert moves["total"] == moves["counts"]["moves"] == len(moves["rows"]) >= 200
    collected = []
    for offset in range(0, moves["total"], 60):
        collected += person.call("plan_rows", **plan, offset=offset, limit=60)["rows"]
    assert collected == moves["rows"]
    invoices = person.call("plan_rows", **plan, folder="Invoices", limit=10)
    assert {row["folder"] for row in invoices["rows"]} == {"Invoices"}
    (total,) = [entry["files"] for entry in moves["folders"] if entry["folder"] == "Invoices"]
    assert invoices["total"] == total >= 150
    assert person.call("plan_rows", **plan, filter="BILL 01")["total"] == 50
    folders = person.call("plan_rows", **plan, view="by_folder")
    assert (folders["rows"], folders["folders"]) == ([], moves["folders"])
    low = person.call("plan_rows", **plan, view="below", limit=2_000)["rows"]
    assert all(row["confidence"] < 0.8 for row in low)
    whole = person.call("plan_rows", **plan, view="all", limit=2_000)
    assert whole["total"] == len(whole["rows"]) > moves["total"]


@pytest.mark.req("SV-42.b")
def test_a_plan_that_is_not_begun_can_be_closed_and_a_scan_can_be_stopped(person: Person, home: Path) -> None:
    folder = home / "Downloads"
    page = scanned(person, folder)
    assert person.call("stop_plan", plan_id=page["plan_id"])["status"] == "CANCELLED"
    assert person.refused("stop_plan", plan_id=page["plan_id"])["code"] == "CONFLICT"
    assert person.refused("stop_plan", plan_id="nothing")["code"] == "NOT_FOUND"
    plant(folder, {f"d{outer}": {f"f{inner}.txt": "x" * 2_000 for inner in range(200)} for outer in range(20)})
    scan = person.call("start_scan", directory=str(folder), include_subfolders=True)
    began = time.monotonic()
    if scan["plan_id"] in [other["plan_id"] for other in person.call("running_scans")["scans"]]:
        person.call("stop_plan", plan_id=scan["plan_id"])
    until("the scan has ended", lambda: person.call("running_scans")["scans"] == [], seconds=60)
    assert time.monotonic() - began < 60
    assert person.call("running_scans")["failed"] == []


@pytest.mark.req("SV-42.b")
def test_a_plan_that_is_carried_out_can_be_stopped_and_goes_on(person: Person, home: Path, house: House) -> None:
    folder = home / "Downloads"
    plant(folder, {f"bill {number:04}.txt": INVOICE.format(number + 100) for number in range(1_500)})
    page = scanned(person, folder)
    plan = {"plan_id": page["plan_id"]}
    person.call("approve_plan", **plan, plan_hash=page["plan_hash"])
    child = os.fork()
    if child == 0:
        try:
            Person(house.state).call("execute_plan_for_person", **plan)
        except BaseException:
            os._exit(1)
        os._exit(0)
    try:
        until("it is being carried out", lambda: plan["plan_id"] in person.call("running_scans")["busy_plans"])
        person.call("stop_plan", **plan)
    except AssertionError:
        pass
    os.waitpid(child, 0)
    totals = person.call("plan_rows", **plan)["totals"]
    assert totals["moves"] >= 1_500
    done = person.call("execute_plan_for_person", **plan)
    assert (done["status"], done["totals"]["DONE"]) == ("EXECUTED", totals["moves"])
    person.call("undo_plan_items", **plan)
    assert (folder / "bill 0000.txt").exists()


@pytest.mark.req("SV-42.a")
def test_the_plans_come_by_page(person: Person, home: Path) -> None:
    for _ in range(3):
        scanned(person, home / "Downloads")
    whole = person.call("all_plans")["plans"]
    first = person.call("all_plans", limit=2)
    rest = person.call("all_plans", limit=2, cursor=first["next_cursor"])
    assert first["plans"] + rest["plans"] == whole
    assert len(whole) == 3
    assert "next_cursor" not in rest
