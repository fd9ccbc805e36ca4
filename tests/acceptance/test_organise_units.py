"""What belongs together, through the tools: moved as one or not at all, and taken back as one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.organising import Tidier, tidying
from tests.helpers.trees import harvest, plant

PHOTO = {"IMG_1.jpg", "IMG_1.xmp"}
VOLUMES = {"game.part1.rar", "game.part2.rar"}


@pytest.fixture
def tidier(root: Path, state_dir: Path) -> Iterator[Tidier]:
    plant(root, {name: name for name in (*PHOTO, *VOLUMES, "movie.mp4")})
    with tidying(root, state_dir) as one:
        yield one


def approved(tidier: Tidier) -> dict[str, Any]:
    plan = tidier.plan()
    assert set(tidier.moves(plan)) == {*PHOTO, *VOLUMES, "movie.mp4"}
    tidier.approve(plan)
    return plan


@pytest.mark.req("OR-04.d")
def test_a_unit_whose_sidecar_changed_after_the_approval_stays_whole(tidier: Tidier) -> None:
    plan = approved(tidier)
    (tidier.root / "IMG_1.xmp").write_text("edited since")
    done = tidier.execute(plan).ok().data
    assert (done["status"], done["totals"]["DONE"], done["totals"]["SKIPPED"]) == ("EXECUTED", 3, 2)
    assert {name for name in harvest(tidier.root) if "IMG_1" in name} == PHOTO


@pytest.mark.req("OR-04.d")
def test_a_unit_of_which_a_volume_is_gone_stays_whole(tidier: Tidier) -> None:
    plan = approved(tidier)
    (tidier.root / "game.part2.rar").unlink()
    tidier.execute(plan).ok()
    assert {name for name in harvest(tidier.root) if "game" in name} == {"game.part1.rar"}


@pytest.mark.req("OR-04.d", "OR-45")
def test_one_file_of_a_unit_is_taken_back_with_the_others(tidier: Tidier) -> None:
    plan = approved(tidier)
    tidier.execute(plan).ok()
    assert not PHOTO & set(harvest(tidier.root))
    tidier.agent.call("undo_plan", plan_id=plan["plan_id"], paths=["IMG_1.jpg"]).ok()
    found = set(harvest(tidier.root))
    assert found >= PHOTO
    assert not VOLUMES & found


@pytest.mark.req("OR-04.b")
def test_the_folder_of_a_saved_page_is_no_place_for_other_files(root: Path, state_dir: Path) -> None:
    plant(root, {"page.html": "<p>hello</p>", "page_files": {"style.css": "p {}"}, "movie.mp4": "m"})
    with tidying(root, state_dir) as one:
        assert "page_files" not in one.plan()["shelves"]
