"""Ten ways in which an organiser loses files or trust, each tried on this one."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.organising import HOUSE, INVOICE, RECIPE, Tidier, tidying
from tests.helpers.trees import harvest, plant


@pytest.fixture
def tidier(root: Path, state_dir: Path) -> Iterator[Tidier]:
    with tidying(root, state_dir) as one:
        yield one


@pytest.mark.req("OR-31.a")
def test_two_files_of_one_name_are_both_there_afterwards(tidier: Tidier) -> None:
    plant(
        tidier.root, {**HOUSE, "invoice.txt": INVOICE.format(1001), "New folder": {"invoice.txt": INVOICE.format(1002)}}
    )
    before = sorted(harvest(tidier.root).values())
    plan = tidier.plan()
    tidier.approve(plan)
    tidier.execute(plan).ok()
    assert {"Invoices/invoice.txt", "Invoices/invoice (2).txt"} <= set(harvest(tidier.root))
    assert sorted(harvest(tidier.root).values()) == before


@pytest.mark.req("OR-01.a")
@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 8191, 8192])
def test_small_files_are_planned_like_any_other(tidier: Tidier, size: int) -> None:
    plant(tidier.root, {"clip.mp4": b"x" * size})
    assert tidier.moves(tidier.plan()) == {"clip.mp4": "Video/clip.mp4"}


@pytest.mark.req("OR-42.c")
def test_a_new_file_under_the_old_name_is_left_alone_by_a_second_execution(tidier: Tidier) -> None:
    plant(tidier.root, {"clip.mp4": "first"})
    plan = tidier.plan()
    tidier.approve(plan)
    tidier.execute(plan).ok()
    plant(tidier.root, {"clip.mp4": "second"})
    assert tidier.execute(plan).ok().data["already_done"] == 1
    assert harvest(tidier.root) == {"Video/clip.mp4": b"first", "clip.mp4": b"second"}


@pytest.mark.req("OR-45.b")
def test_an_undo_overwrites_nothing(tidier: Tidier) -> None:
    plant(tidier.root, {"clip.mp4": "first", "song.mp3": "s"})
    plan = tidier.plan()
    tidier.approve(plan)
    tidier.execute(plan).ok()
    plant(tidier.root, {"clip.mp4": "second"})
    assert tidier.undo(plan).ok().data["totals"] == {"moves": 2, "DONE": 1, "UNDONE": 1}
    assert harvest(tidier.root) == {"Video/clip.mp4": b"first", "clip.mp4": b"second", "song.mp3": b"s"}


@pytest.mark.req("OR-33.a", "OR-42.a")
def test_an_approval_holds_for_the_files_that_were_shown(tidier: Tidier) -> None:
    plant(tidier.root, {"clip.mp4": "first", "song.mp3": "s"})
    plan = tidier.plan()
    tidier.approve(plan)
    (tidier.root / "clip.mp4").write_text("something else")
    done = tidier.execute(plan).ok().data
    assert done["totals"] == {"moves": 2, "SKIPPED": 1, "DONE": 1}
    assert harvest(tidier.root) == {"clip.mp4": b"something else", "Music/song.mp3": b"s"}


@pytest.mark.req("OR-31.b")
def test_missing_folders_are_made_and_no_file_becomes_one(tidier: Tidier) -> None:
    plant(tidier.root, {"clip.mp4": "c"})
    plan = tidier.plan()
    tidier.revise(plan, clip__mp4="Films/2024/Summer")
    tidier.approve(plan)
    tidier.execute(plan).ok()
    assert harvest(tidier.root) == {"Films/2024/Summer/clip.mp4": b"c"}


@pytest.mark.req("OR-02.b")
def test_another_set_of_folders_decides_anew_and_a_touched_file_is_read_again(tidier: Tidier) -> None:
    plant(tidier.root, {"weekend.txt": RECIPE.format(5)})
    assert "Kitchen/weekend.txt" not in tidier.moves(tidier.plan()).values()
    plant(tidier.root, {"Kitchen": HOUSE["Recipes"], "Invoices": HOUSE["Invoices"]})
    plan = tidier.plan()
    assert tidier.moves(plan)["weekend.txt"] == "Kitchen/weekend.txt"
    os.utime(tidier.root / "weekend.txt")
    assert tidier.plan()["measures"]["cache_hit_rate"] == pytest.approx(10 / 11, abs=1e-3)


@pytest.mark.req("OR-20.b", "OR-24.a")
def test_a_category_inside_another_word_gains_nothing(tidier: Tidier) -> None:
    plant(tidier.root, {"Art": {}, "cartoon.xyz": "q", "Keep": {}})
    plan = tidier.plan()
    assert tidier.moves(plan) == {}
    assert [doubt["path"] for doubt in plan["uncertain"]] == ["cartoon.xyz"]


@pytest.mark.req("OR-03.a", "OR-05.a")
def test_what_must_be_left_alone_is_never_offered(tidier: Tidier) -> None:
    plant(
        tidier.root,
        {
            "repo": {".git": {"HEAD": "x"}, "a.mp4": "1"},
            "node_modules": {"b.mp4": "2"},
            "Tool.app": {"c.mp4": "3"},
            "d.mp4.crdownload": "4",
            ".e.mp4.icloud": "5",
            "f.mp4": "6",
        },
    )
    os.mkfifo(tidier.root / "g.mp4")
    os.symlink("f.mp4", tidier.root / "h.mp4")
    plan = tidier.plan()
    assert tidier.moves(plan) == {"f.mp4": "Video/f.mp4"}
    assert sum(plan["skipped"].values()) >= 5


@pytest.mark.req("OR-06.a", "OR-06.b")
def test_a_link_in_the_way_leads_nothing_out(tidier: Tidier, tmp_path: Path) -> None:
    outside = plant(tmp_path / "outside", {"secret.mp4": "s"})
    plant(tidier.root, {"clip.mp4": "c"})
    os.symlink(outside, tidier.root / "linked")
    os.symlink(outside, tidier.root / "Video")
    plan = tidier.plan()
    assert "linked/secret.mp4" not in tidier.moves(plan)
    assert tidier.agent.call("create_organization_plan", folder_path="linked").code == "ACCESS_DENIED"
    tidier.approve(plan)
    tidier.execute(plan)
    assert harvest(outside) == {"secret.mp4": b"s"}
