"""The changes on disks in memory that forget what was not synced, in any order: as before or as after, nothing lost."""

import stat
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.torture.changes_memory import Node
from tests.torture.changes_model import CrashMachine

EXPLORING = settings(
    max_examples=60,
    stateful_step_count=10,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.timeout(300)
@pytest.mark.req("OR-41.d")
def test_whatever_the_disks_forget_everything_is_as_before_or_as_after() -> None:
    run_state_machine_as_test(CrashMachine, settings=EXPLORING)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("is_synced", [stat.S_ISDIR, stat.S_ISREG], ids=["files", "directories"])
def test_the_model_notices_that_something_is_never_synced(is_synced: Callable[[int], bool]) -> None:
    class Forgetful(CrashMachine):
        @staticmethod
        def on_fsync(node: Node) -> bool:
            return is_synced(node.mode)

    hunting = settings(EXPLORING, max_examples=300, phases=[Phase.generate])
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Forgetful, settings=hunting)
