"""Long work of `holdfast organise` in a terminal: counts and a bar while it goes on, and what Ctrl-C leaves behind."""

import re
from pathlib import Path

import pytest

from tests.helpers.agent import Agent
from tests.helpers.documents import pdf
from tests.helpers.organising import HOUSE, approved, organise, organised
from tests.helpers.terminal import interrupted, output_of
from tests.helpers.trees import harvest, plant

DOCUMENTS = 240
FILMS = 2_000


def start_server(root: Path, state: Path) -> None:
    """Have a background server, which outlives its first client."""
    with Agent([root], state) as agent:
        agent.call("list_directory", path=".").ok()


def documents_to_read(screen: str) -> int:
    """Return how many documents a scan had to read in full."""
    return max((int(count) for count in re.findall(r"Reading documents: \d+ of (\d+)", screen)), default=0)


@pytest.mark.req("OR-05.c", "OR-51.a")
@pytest.mark.parametrize("server", [False, True])
def test_a_scan_that_ctrl_c_stopped_goes_on_from_what_it_read(root: Path, ended_state: Path, server: bool) -> None:
    plant(
        root,
        {f"letter {number}.pdf": pdf(f"Letter number {number} about nothing at all.") for number in range(DOCUMENTS)},
    )
    if server:
        start_server(root, ended_state)
    status, screen = interrupted(ended_state, rb"Reading documents: [1-9]\d* of 240", "organise", "scan", str(root))
    assert (status, "Aborted" in screen) == (130, False), screen
    assert "Stopped; there is no plan, and nothing has moved." in screen
    assert f"holdfast organise scan {root}" in screen
    done = max(int(count) for count in re.findall(r"Reading documents: (\d+) of 240", screen))
    again = output_of(ended_state, "organise", "scan", str(root)).decode()
    assert f"{DOCUMENTS} files scanned" in again
    assert done > 0
    assert documents_to_read(again) <= DOCUMENTS - done
    assert "█" in screen


@pytest.mark.req("OR-51.a", "OR-45.a")
@pytest.mark.parametrize("server", [False, True])
def test_ctrl_c_in_an_execution_and_an_undo_says_how_far_it_came(root: Path, ended_state: Path, server: bool) -> None:
    plant(root, {f"film {number}.mp4": f"{number}" for number in range(FILMS)})
    before = harvest(root)
    if server:
        start_server(root, ended_state)
    plan = organised(ended_state, "scan", str(root))["plan_id"][:8]
    approved(ended_state, plan)
    status, screen = interrupted(ended_state, b" done", "organise", "execute", plan)
    moved = len(list((root / "Video").iterdir()))
    assert (status, "Aborted" in screen) == (130, False), screen
    assert re.search(rf"(\x1b\[K|\n)Stopped: {moved:,} of {FILMS:,} files moved\.", screen), "no bar beside the words"
    assert 0 < moved < FILMS
    assert f"{moved:,} of {FILMS:,} moved" in organise(ended_state, "list").stdout
    assert organised(ended_state, "execute", plan)["status"] == "EXECUTED"
    status, screen = interrupted(ended_state, b" done", "organise", "undo", plan)
    back = FILMS - len(list((root / "Video").iterdir()))
    assert status == 130
    assert f"Stopped: {back:,} of {FILMS:,} files moved back." in screen
    assert organised(ended_state, "undo", plan)["status"] == "UNDONE"
    assert harvest(root) == before


@pytest.mark.req("OR-51.a")
def test_an_evaluation_shows_what_it_reads_and_names_what_it_cannot_measure(root: Path, ended_state: Path) -> None:
    plant(root, {**HOUSE, "Letters": {f"{number}.pdf": pdf(f"Dear Sir, letter {number}") for number in range(6)}})
    plant(
        root,
        {
            "Photos": {f"{number}.jpg": "not read" for number in range(3)},
            "Lone": {"a.txt": "One single letter about the garden. " * 9},
        },
    )
    screen = output_of(ended_state, "organise", "evaluate", str(root)).decode()
    assert "Reading documents: 0 of" in screen
    assert "Not measured in Photos: 3 files without readable text." in screen
    assert re.search(r"Lone +1 +too few files", screen)
