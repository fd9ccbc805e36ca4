"""Children that read: what they can open, and when they end."""

import os
import threading
import time
from pathlib import Path

import pytest

from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.call import Call
from holdfast.errors import Cancelled, PayloadTooLarge, TimedOut
from holdfast.folders.children.confine import Child, can_confine, python_child, run_child
from tests.helpers.trees import plant

TRY = "import sys\ntry:\n    print(open(sys.argv[1]).read(3))\nexcept OSError as e:\n    print(type(e).__name__)\n"


def new_call(seconds: float = 20) -> Call:
    return Call(Caller(LOCAL_USER), timeout_seconds=seconds)


def test_this_machine_can_confine() -> None:
    assert can_confine(), "the tests need a kernel with Landlock"


def test_a_child_reads_what_it_was_given_and_nothing_else(tmp_path: Path) -> None:
    plant(tmp_path, {"in": {"a": "yes"}, "out": {"b": "no"}})
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out" / "b")
    folder = os.open(tmp_path / "in", os.O_RDONLY)

    def tried(path: str) -> str:
        base = python_child("-c", TRY, path)
        child = Child(base.argv, [folder], base.runnable_paths, folder, environment=base.environment)
        return run_child(new_call(), child).stdout.decode().strip()

    assert tried("a") == "yes"
    assert tried("link") == "PermissionError"
    for outside in (tmp_path / "out" / "b", "/etc/passwd", "/proc/self/environ"):
        assert tried(str(outside)) == "PermissionError"
    os.close(folder)


def test_a_child_has_no_environment_no_network_and_no_way_to_write(tmp_path: Path) -> None:
    code = (
        "import os, socket, sys\n"
        "print(sorted(os.environ))\n"
        "for act in (lambda: socket.create_connection(('127.0.0.1', 9), 1), lambda: open(sys.argv[1], 'w')):\n"
        "    try:\n        act()\n        print('done')\n"
        "    except OSError as e:\n        print(type(e).__name__)\n"
    )
    said = run_child(new_call(), python_child("-c", code, str(tmp_path / "new"))).stdout.decode().split("\n")
    assert said[:3] == ["['HOME', 'LC_ALL']", "PermissionError", "PermissionError"]
    assert not (tmp_path / "new").exists()


def test_only_the_child_is_confined() -> None:
    run_child(new_call(), python_child("-c", "pass"))
    assert Path("/etc/passwd").read_text()


def test_a_child_is_killed_at_the_deadline() -> None:
    started = time.monotonic()
    with pytest.raises(TimedOut):
        run_child(new_call(0.3), python_child("-c", "import time; time.sleep(60)"))
    assert time.monotonic() - started < 10


def test_a_child_is_killed_when_the_call_is_cancelled() -> None:
    call = new_call()
    threading.Timer(0.3, call.cancel).start()
    with pytest.raises(Cancelled):
        run_child(call, python_child("-c", "import time; time.sleep(60)"))


def test_output_is_bounded() -> None:
    base = python_child("-c", "import sys\nwhile True: sys.stdout.write('x' * 65536)")
    child = Child(
        base.argv, runnable_paths=base.runnable_paths, environment=base.environment, max_output_bytes=1_000_000
    )
    with pytest.raises(PayloadTooLarge):
        run_child(new_call(), child)


def test_enough_ends_a_child_early() -> None:
    code = "import sys\nwhile True: print('line', flush=True)"
    outcome = run_child(new_call(), python_child("-c", code), enough=lambda _piece: True)
    assert outcome.stopped
    assert outcome.stdout.startswith(b"line\n")


def test_a_large_input_reaches_the_child() -> None:
    code = "import sys; print(len(sys.stdin.buffer.read()))"
    assert run_child(new_call(), python_child("-c", code, stdin=b"x" * 5_000_000)).stdout == b"5000000\n"


def test_a_child_that_does_not_read_its_input_is_no_error() -> None:
    assert run_child(new_call(), python_child("-c", "print(1)", stdin=b"x" * 5_000_000)).status == 0


def test_no_descriptor_and_no_process_is_left() -> None:
    run_child(new_call(), python_child("-c", "pass"))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        run_child(new_call(), python_child("-c", "pass"))
    assert len(os.listdir("/proc/self/fd")) == before
