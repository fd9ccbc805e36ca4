"""The jail and the quarantine hold for nobody as for root, and on a kernel without openat2 and Landlock."""

import subprocess
import sys

import pytest

from tests.helpers.restricted import may_change_user

pytestmark = pytest.mark.timeout(240)

TESTS = ("tests/unit/folders/test_jail.py", "tests/attack/test_quarantine.py")
WHO = "from holdfast.folders.access.syscalls import has_openat2, landlock_abi; import os; print(os.geteuid(), has_openat2(), landlock_abi())"


def run_restricted(how: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run Python as nobody or as on an older kernel."""
    words = [sys.executable, "-m", "tests.helpers.restricted", how, sys.executable, *arguments]
    return subprocess.run(words, capture_output=True, text=True, timeout=200, check=False)


def last_line_of_tests(how: str) -> str:
    """Run the tests and return how they ended; `make restricted` runs all the attacks."""
    done = run_restricted(how, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout.splitlines()[-1]


@pytest.mark.req("FS-02.b")
def test_the_attacks_fail_without_openat2_and_landlock() -> None:
    assert run_restricted("older", "-c", WHO).stdout.split()[1:] == ["False", "0"]
    assert " passed" in last_line_of_tests("older")


@pytest.mark.req("FS-02.b")
@pytest.mark.skipif(not may_change_user(), reason="only root can start a process of another user")
def test_the_attacks_fail_for_nobody() -> None:
    assert run_restricted("nobody", "-c", WHO).stdout.split()[0] == "65534"
    assert " passed" in last_line_of_tests("nobody")
