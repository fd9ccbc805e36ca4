"""A process that is told to end does, whatever its threads are doing."""

import subprocess
import sys

START = "import threading\nfrom concurrent.futures import ThreadPoolExecutor\nfrom holdfast.transport import shutdown\n"


def run(code: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", START + code], capture_output=True, text=True, timeout=60, check=False)


def test_a_process_is_cut_off_when_closing_takes_too_long() -> None:
    done = run("shutdown.exit_within(0.1)\nprint('closing')\nthreading.Event().wait()")
    assert (done.returncode, done.stdout) == (0, "closing\n")
    assert "ends without waiting for: its closing" in done.stderr


def test_a_process_does_not_wait_for_a_busy_thread_and_names_it() -> None:
    stuck = "threading.Thread(target=threading.Event().wait, name='stuck').start()\n"
    done = run(stuck + "shutdown.exit_within(0.1)\nprint('closed')")
    assert (done.returncode, done.stdout) == (0, "closed\n")
    assert "ends without waiting for: stuck" in done.stderr


def test_a_process_that_can_end_by_itself_does() -> None:
    idle = "pool = ThreadPoolExecutor()\npool.submit(print, 'worked').result()\n"
    done = run(idle + "shutdown.exit_within(30)\nprint('closed')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "worked\nclosed\n", "")
