"""What the organiser keeps of a plan from the moment that it begins to make it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.adapters.sqlite.state.file_cache import open_file_cache
from holdfast.adapters.sqlite.state.plan_notes import open_plan_notes
from holdfast.config.settings import OrganiserSettings
from holdfast.errors import ResourceBusy
from holdfast.organiser.classify.cascade import Cascade
from holdfast.organiser.planning.build_plan import OrganiserState
from holdfast.organiser.service import Organiser
from tests.unit.changes.world import World, opened_world


@pytest.fixture
def world(root: Path, tmp_path: Path) -> Iterator[World]:
    with opened_world([root], tmp_path / "state") as opened:
        yield opened


@pytest.fixture
def organiser(world: World) -> Iterator[Organiser]:
    with closing(open_file_cache(str(world.state))) as files, closing(open_plan_notes(str(world.state))) as notes:
        state = OrganiserState(files, files, notes)
        with closing(Organiser(world.changes.plans, state, Cascade(), OrganiserSettings())) as organiser:
            yield organiser


def noted_plans(world: World) -> list[str]:
    with closing(sqlite3.connect(world.state / "state.db")) as database:
        return [plan_id for (plan_id,) in database.execute("SELECT plan_id FROM plan_notes")]


def test_a_plan_has_notes_as_soon_as_it_has_an_id(organiser: Organiser, world: World) -> None:
    job = organiser.begin(world.folders, world.call(), ".")
    assert noted_plans(world) == [job.plan_id]
    job.future.result(60)
    assert organiser.show(world.folders, job.plan_id).notes.folder == str(world.root)


def test_a_refused_plan_leaves_no_notes(organiser: Organiser, world: World) -> None:
    organiser.close()
    with pytest.raises(ResourceBusy):
        organiser.begin(world.folders, world.call(), ".")
    assert noted_plans(world) == []
