"""What a link says after it moved: it leads where it led, whatever the same plan moves besides."""

import os

import pytest

from holdfast.changes.disk.links import Links, is_canonical_link, link_target
from holdfast.changes.model import Item, ItemStatus, NodeType, Op
from tests.helpers.trees import plant
from tests.unit.changes.world import World

CASES = [
    ("/r/l", "data", "/r/V/l", "../data"),
    ("/r/l", "data", "/r/V/W/m", "../../data"),
    ("/r/V/l", "../data", "/r/l", "data"),
    ("/r/V/l", "../data", "/r/W/l", "../data"),
    ("/r/l", "V/data", "/r/V/l", "data"),
    ("/r/V/l", "..", "/r/l", "."),
    ("/r/l", "../out/x", "/r/V/l", "../../out/x"),
    ("/l", "data", "/V/l", "../data"),
    ("/r/l", "/abs/data", "/r/V/l", "/abs/data"),
    ("/r/l", "film", "/r/V/l", "film"),
    ("/r/l", "/r/film", "/r/V/l", "/r/V/film"),
    ("/r/l", "box/in/it", "/r/V/l", "../Boxes/box/in/it"),
    ("/r/l", "\udcff", "/r/V/l", "../\udcff"),
]
MOVES = {"/r/film": "/r/V/film", "/r/box": "/r/Boxes/box"}


@pytest.mark.parametrize(("path", "text", "dest", "said"), CASES)
def test_a_link_is_rewritten_for_its_destination(path: str, text: str, dest: str, said: str) -> None:
    links = Links(MOVES)
    assert links.rewrite(path, text, dest) == said
    assert link_target(dest, said) == links.target_after_moves(path, text)


@pytest.mark.parametrize(("path", "text", "dest", "said"), CASES)
def test_the_way_back_says_what_it_said(path: str, text: str, dest: str, said: str) -> None:
    back = Links({target: source for source, target in MOVES.items()})
    assert back.rewrite(dest, said, path) == text


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        *[(text, True) for text in ("data", "../data", "..", "/a/b")],
        *[(text, False) for text in ("./data", "a/../data", "a//b", "a/", "../r/data")],
    ],
)
def test_a_link_that_makes_a_detour_is_not_plain(text: str, plain: bool) -> None:
    assert is_canonical_link("/r/l", text) is plain


def test_what_an_undo_leaves_does_not_count_as_moved() -> None:
    link = Item(Op.MOVE, "/r/V/l", "/r/l", node=NodeType.LINK, reverses=0)
    left = Item(Op.MOVE, "/r/V/film", "/r/film", reverses=1, status=ItemStatus.SKIPPED)
    assert Links.from_items([link, left]).rewrite("/r/V/l", "film", "/r/l") == "V/film"
    assert Links.from_items([left]).moves == {}


def test_a_link_and_what_it_leads_to_move_in_one_plan_and_back_one_by_one(world: World) -> None:
    plant(world.root, {"data": "d", "film": "f"})
    os.symlink("data", world.root / "near")
    os.symlink("film", world.root / "latest")
    plan = world.run_plan({"near": "V/near", "latest": "V/latest", "film": "W/film"})
    assert os.readlink(world.root / "V/near") == "../data"
    assert os.readlink(world.root / "V/latest") == "../W/film"
    assert (world.root / "V/latest").read_text() == "f"
    world.changes.plans.undo(world.folders, world.call(), plan, [1])
    assert os.readlink(world.root / "latest") == "W/film"
    world.changes.plans.undo(world.folders, world.call(), plan)
    assert os.readlink(world.root / "near") == "data"
    assert (world.root / "near").read_text() == "d"
    assert not (world.root / "V").exists()
    assert world.leftovers() == []


def test_a_link_whose_destination_is_taken_meanwhile_stays_as_it_was(world: World) -> None:
    plant(world.root, {"data": "d"})
    os.symlink("data", world.root / "near")
    plan = world.approve(world.plan({"near": "V/near"}))
    plant(world.root, {"V": {"near": "theirs"}})
    done = world.execute(plan)
    assert [item.status.value for item in done.items if item.op is Op.MOVE] == ["ERROR"]
    assert os.readlink(world.root / "near") == "data"
    assert (world.root / "V/near").read_text() == "theirs"
    (world.root / "V/near").unlink()
    assert world.execute(plan).status == "EXECUTED"
    assert os.readlink(world.root / "V/near") == "../data"
    assert world.leftovers() == []


def test_a_link_that_says_something_else_by_now_is_left(world: World) -> None:
    plant(world.root, {"data": "d", "other": "o"})
    os.symlink("data", world.root / "near")
    plan = world.approve(world.plan({"near": "V/near"}))
    (world.root / "near").unlink()
    os.symlink("other", world.root / "near")
    done = world.execute(plan)
    assert [item.status.value for item in done.items if item.op is Op.MOVE] == ["SKIPPED"]
    assert os.readlink(world.root / "near") == "other"
