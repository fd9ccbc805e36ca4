"""`holdfast organise` in a terminal: from a messy folder to a tidy one and back, with a server and without."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.text.display import format_percent
from tests.helpers.agent import Agent
from tests.helpers.organising import HOUSE, INVOICE, approved, organise, organised
from tests.helpers.trees import harvest, plant

KINDS = ("mp4", "mp3", "zip", "dmg", "csv", "epub", "ttf")


@pytest.mark.req("OR-51.a", "OR-51.b")
@pytest.mark.parametrize("server", [False, True])
def test_the_commands_tidy_a_folder_and_take_it_back(root: Path, ended_state: Path, server: bool) -> None:
    plant(root, HOUSE)
    before = harvest(root)
    if server:
        with Agent([root], ended_state) as agent:
            agent.call("list_directory", path=".").ok()
    plan = organised(ended_state, "scan", str(root))
    name = plan["plan_id"][:10]
    assert plan["totals"]["moves"] == 3
    assert harvest(root) == before
    assert organise(ended_state, "execute", name).returncode == 13
    assert organise(ended_state, "approve", name).returncode == 2
    assert approved(ended_state, name)["status"] == "APPROVED"
    assert organised(ended_state, "execute", name)["status"] == "EXECUTED"
    assert (root / "Recipes/pasta.txt").exists()
    assert organised(ended_state, "explain", str(root / "pasta.txt"))["path"] == f"{root}/Recipes/pasta.txt"
    assert organised(ended_state, "undo", name, "pasta.txt")["totals"]["UNDONE"] == 1
    assert (root / "pasta.txt").exists()
    assert organised(ended_state, "undo", name)["status"] == "UNDONE"
    assert harvest(root) == before
    assert [one["status"] for one in organised(ended_state, "list")["plans"]] == ["UNDONE"]
    assert organise(ended_state, "show", "ffff").returncode == 1


@pytest.mark.req("OR-51.a", "OR-03.b", "OR-24.a")
def test_a_plan_is_readable_at_a_glance(root: Path, ended_state: Path) -> None:
    plant(root, {**HOUSE, ".secret": "s"})
    shown = organise(ended_state, "scan", str(root))
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout
    for words in (
        "3 files would move to 3 folders, 1 of them new.",
        "Needs a look: 1 uncertain file",
        "Skipped: 1 hidden",
    ):
        assert words in lines
    folders = [line.split() for line in lines.splitlines() if "/" in line and "%" in line]
    assert [one[:2] for one in folders] == [["1", "Invoices/"], ["1", "Recipes/"], ["1", "Video/"]]
    assert [one[-1] for one in folders] == ["scan_0012.txt", "pasta.txt", "movie.mp4"]
    assert ["new" in one for one in folders] == [False, False, True]
    assert "\x1b" not in lines
    moved = organise(ended_state, "move", "", "qwx", "Odd")
    assert moved.returncode == 0, moved.stderr
    assert "Odd/" in moved.stdout
    assert organise(ended_state, "cancel").returncode == 0


@pytest.mark.req("OR-51.a")
def test_a_first_look_at_a_messy_folder_fits_the_screen_and_says_what_next(
    root: Path, ended_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(root, {f"{kind} {'with a long name ' * 6}{number}.{kind}": "x" for kind in KINDS for number in range(4)})
    plant(root, {f"{'nobody knows ' * 8}{number}": "z" for number in range(30)})
    for width, words in ((80, ("scan", str(root))), (120, ("show",))):
        monkeypatch.setenv("COLUMNS", str(width))
        shown = organise(ended_state, *words).stdout.splitlines()
        assert "28 files would move to 7 new folders. Nothing has moved yet." in shown
        assert len(shown) < 40
        assert max(map(len, shown[1:])) <= width
        for command in ("organise show", "organise approve", "organise move"):
            assert any(command in line for line in shown)
    assert organise(ended_state, "show", "--all").stdout.count("with a long name") == 28 * 6


@pytest.mark.req("OR-51.a")
def test_a_file_is_sent_elsewhere_in_the_newest_plan_and_a_cleaned_folder_name_is_told(
    root: Path, ended_state: Path
) -> None:
    plant(root, HOUSE)
    plan = organised(ended_state, "scan", str(root))["plan_id"]
    moved = organise(ended_state, "move", "qwx", "Odd: things")
    assert moved.returncode == 0, moved.stderr
    assert "The folder is called Odd things, not Odd: things." in moved.stderr
    assert "Odd things/" in moved.stdout
    stays = organise(ended_state, "move", plan[:8], "pasta.txt")
    assert stays.returncode == 0, stays.stderr
    assert {move["path"] for move in organised(ended_state, "show", plan)["moves"]} == {
        "qwx",
        "movie.mp4",
        "scan_0012.txt",
    }
    assert "A file of the plan is missing" in organise(ended_state, "move", plan).stderr


@pytest.mark.req("OR-51.a")
def test_a_correction_says_which_other_files_change_their_places_and_gives_no_code_for_what_it_did_not_show(
    root: Path, ended_state: Path
) -> None:
    plant(root, {**HOUSE, **{f"scan_{number}.txt": INVOICE.format(number) for number in range(20, 24)}})
    plan = organised(ended_state, "scan", str(root))["plan_id"]
    before = folders_by_file(organised(ended_state, "show", plan))
    said = organise(ended_state, "move", "pasta.txt", "Invoices").stdout
    after = folders_by_file(organised(ended_state, "show", plan))
    changed = {path for path in {*before, *after} - {"pasta.txt"} if before.get(path) != after.get(path)}
    assert said.splitlines()[0] == "pasta.txt goes to Invoices/."
    listed = {line.strip().partition(": ")[0] for line in said.splitlines() if " → " in line}
    assert listed == changed
    assert ("No other file changes its place." in said) == (not changed)
    assert "movie.mp4" not in said, "the plan is not listed again"
    assert "To approve exactly this" not in said
    assert f"holdfast organise show {plan[:8]} --all" in said
    assert "movie.mp4 stays where it is." in organise(ended_state, "move", "movie.mp4").stdout


@pytest.mark.req("OR-51.a")
def test_a_correction_makes_no_other_file_uncertain_whose_folder_it_does_not_question(
    root: Path, ended_state: Path
) -> None:
    java = "public class {0} {{ public static void main(String[] a) {{ System.out.println({0}.class); }} }}\n"
    plant(root, {**HOUSE, "README.md": "# A project\ncode install usage\n"})
    plant(root, {f"{name}.java": java.format(name) for name in ("Main", "Shop", "Cart")})
    plan = organised(ended_state, "scan", str(root))["plan_id"]
    before = folders_by_file(organised(ended_state, "show", plan))
    assert before["Main.java"] == "Code/Main.java"
    organise(ended_state, "move", "README.md", "Code")
    after = folders_by_file(organised(ended_state, "show", plan))
    assert after == {**before, **after, "README.md": "Code/README.md"}
    assert before.keys() <= after.keys()


@pytest.mark.req("OR-45.a", "OR-51.a")
def test_a_correction_that_was_taken_back_is_not_planned_again(root: Path, ended_state: Path) -> None:
    plant(root, {**HOUSE, "strange.dat": "zz"})
    plan = organised(ended_state, "scan", str(root))["plan_id"]
    organise(ended_state, "move", "strange.dat", "Ideas")
    approved(ended_state, plan)
    organised(ended_state, "execute")
    assert organise(ended_state, "undo", "strange.dat").returncode == 0
    again = organised(ended_state, "scan", str(root))
    assert "strange.dat" not in folders_by_file(organised(ended_state, "show", again["plan_id"]))


def folders_by_file(plan: dict[str, Any]) -> dict[str, str]:
    return {move["path"]: move["to"] for move in plan["moves"]}


@pytest.mark.req("OR-45.a", "OR-51.a")
def test_files_of_the_newest_plan_are_undone_by_their_names_alone(root: Path, ended_state: Path) -> None:
    plant(root, {"a.mp3": "a", "b.mp3": "b", "c.mp3": "c"})
    plan = organised(ended_state, "scan", str(root))["plan_id"]
    approved(ended_state, plan)
    organised(ended_state, "execute")
    done = organise(ended_state, "undo", "Music/a.mp3", str(root / "Music/b.mp3"))
    assert (done.returncode, done.stderr.startswith(f"plan {plan[:8]} of ")) == (0, True), done.stderr
    assert {path.name for path in root.glob("*.mp3")} == {"a.mp3", "b.mp3"}
    assert "There is no plan 'abcd'." in organise(ended_state, "undo", "abcd").stderr
    assert organise(ended_state, "undo", plan[:8]).returncode == 0
    assert {path.name for path in root.glob("*.mp3")} == {"a.mp3", "b.mp3", "c.mp3"}


@pytest.mark.req("OR-32.b", "OR-51.a")
def test_show_and_explain_say_the_same_of_a_file_and_keep_to_the_width(
    root: Path, ended_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    plant(
        root, {**HOUSE, "bill.txt": "Amount due: see the invoice of Acme, flour and sugar included, thank you all.\n"}
    )
    plan = organised(ended_state, "scan", str(root))
    for move in plan["moves"]:
        said = organise(ended_state, "explain", str(root / move["path"])).stdout
        assert f"{format_percent(move['confidence'])} sure" in said
        assert max(map(len, said.splitlines()[1:])) <= 80 or max(map(len, said.split())) > 80
    for file in plan["uncertain"]:
        said = organise(ended_state, "explain", str(root / file["path"])).stdout
        assert "Belongs to" not in said
        assert ("Best guess" in said) == bool(file["folder"])
    approved(ended_state, plan["plan_id"])
    organised(ended_state, "execute")
    for move in plan["moves"]:
        said = organise(ended_state, "explain", str(root / move["to"])).stdout
        assert f"{format_percent(move['confidence'])} sure" in said


@pytest.mark.req("OR-32.b", "OR-51.a")
def test_what_came_back_is_explained_in_words_and_skipped_entries_are_named(root: Path, ended_state: Path) -> None:
    plant(root, {"movie.mp4": "m", ".one": "1", ".two": "2", "tool": {".git": {"HEAD": "ref"}, "a.py": "a"}})
    (root / "first").symlink_to("movie.mp4")
    (root / "second").symlink_to("movie.mp4")
    plan = organised(ended_state, "scan", str(root))["plan_id"]
    everything = organise(ended_state, "show", "--all").stdout
    assert "2 symbolic links" in everything
    for name in (".one", ".two", "first", "second", "tool"):
        assert any(line.strip().startswith(name) for line in everything.splitlines()), name
    approved(ended_state, plan)
    organised(ended_state, "execute", plan)
    organised(ended_state, "undo", plan)
    explained = organise(ended_state, "explain", str(root / "movie.mp4")).stdout
    assert "It came back: the plan that had moved it was undone." in explained
    assert "change of kind" not in explained
    assert "1 of 1 moved back" in organise(ended_state, "list").stdout
    assert "folder kept whole" in organise(ended_state, "explain", str(root / "tool/a.py")).stdout


@pytest.mark.req("OR-51.b", "OR-06.a")
def test_wrong_uses_of_the_commands_say_so(root: Path, ended_state: Path) -> None:
    assert organise(ended_state, "scan", str(root / "missing")).returncode == 2
    assert organise(ended_state, "approve", "--yes").returncode == 1
    assert organise(ended_state, "explain", str(root / "missing.txt")).returncode == 1
    empty = organise(ended_state, "scan", str(root))
    assert (empty.returncode, "Nothing to move." in empty.stdout) == (0, True)
    listed = organise(ended_state, "list", "--json")
    assert len(json.loads(listed.stdout)["plans"]) == 1
