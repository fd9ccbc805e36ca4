"""kill -9 at any moment: every file is whole, the journal is true, no helper file stays."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.changes.disk.files import hash_bytes
from holdfast.changes.model import Op
from tests.helpers.trees import harvest
from tests.unit.changes.victim import is_sealed
from tests.unit.changes.world import World, opened_world

KILLS = 30


def run_and_kill(root: Path, state: Path, seconds: float) -> None:
    victim = subprocess.Popen(
        [sys.executable, "-m", "tests.unit.changes.victim", str(root), str(state)], stdout=subprocess.PIPE
    )
    assert victim.stdout is not None
    assert victim.stdout.readline() == b"ready\n"
    time.sleep(seconds)
    victim.send_signal(signal.SIGKILL)
    assert victim.wait(timeout=10) == -signal.SIGKILL
    victim.stdout.close()


def check_journal(world: World) -> None:
    """The newest change in effect on a path left what is there."""
    assert world.changes._journal.find_unfinished() == []
    told: dict[str, str | None] = {}
    for change in world.listed():
        plan = world.changes._journal.find(change.id)
        assert plan is not None
        if plan.status == "EXECUTED":
            for item in plan.items:
                if item.status == "DONE" and item.op in (Op.REPLACE, Op.REMOVE, Op.RESTORE) and item.node == "file":
                    told.setdefault(item.src_path, item.after_hash)
                elif item.op is Op.MOVE:
                    told.setdefault(item.src_path, None)
                    told.setdefault(item.dest_path or "", item.after_hash)
    present = {str(world.root / name): hash_bytes(data) for name, data in harvest(world.root).items()}
    assert present == {path: hash_ for path, hash_ in told.items() if hash_ is not None}


@pytest.mark.timeout(300)
def test_random_kills_leave_whole_files_and_a_true_journal(root: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    for _ in range(KILLS):
        run_and_kill(root, state, random.uniform(0, 0.08))
        with opened_world([root], state) as world:
            for name, data in harvest(root).items():
                assert is_sealed(data), name
            assert world.leftovers() == []
            check_journal(world)
