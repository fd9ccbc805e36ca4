"""The model on this machine reports to nobody: traced system calls show no file outside the state folder and no socket."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EMBED = (
    "from holdfast.adapters.models.minilm import OnnxEmbedder\n"
    "embedder = OnnxEmbedder()\n"
    "assert len(embedder.embed(['one text'], None, lambda: None)[0]) == 384\n"
)
REPORT = (
    "import os, socket, onnxruntime_stand_in\n"
    "os.mkdir(os.path.expanduser('~/.cache'))\n"
    "open(os.path.expanduser('~/.cache/deviceid'), 'w').close()\n"
    "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('127.0.0.1', 53))\n"
)
_CALLS = "open,openat,openat2,creat,mkdir,mkdirat,link,linkat,symlink,symlinkat,rename,renameat,renameat2,mknod,mknodat"
_PATH = re.compile(r'(?:<([^>]*)>, )?"([^"]*)"')


def trace(tmp_path: Path, *arguments: str, **environment: str) -> tuple[list[str], list[str]]:
    """Run Python under strace with a home of its own; return the paths it wrote to, and its system calls of network."""
    home, temporary, log = tmp_path / "home", tmp_path / "temporary", tmp_path / "trace"
    for folder in (home, temporary):
        folder.mkdir(mode=0o700)
    surroundings = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(temporary), **environment}
    command = ["strace", "-f", "-qq", "-y", "-s", "4096", "-o", str(log), "-e", f"trace={_CALLS},%network"]
    command += [sys.executable, "-B", *arguments]
    done = subprocess.run(command, env=surroundings, check=False, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    calls = [line.partition(" ")[2].strip() for line in log.read_text(errors="replace").splitlines()]
    calls = [call for call in calls if not call.startswith(("<...", "+++", "---"))]
    assert any(call.startswith("openat(") and "onnxruntime" in call for call in calls), "the library was not loaded"
    opens = [call for call in calls if call.startswith(("open", "creat"))]
    reads = {call for call in opens if not re.search("O_WRONLY|O_RDWR|O_CREAT|O_TMPFILE|creat", call)}
    files = [call for call in calls if call.split("(")[0] in _CALLS.split(",") and call not in reads]
    written = [os.path.join(*pair) for call in files for pair in _PATH.findall(call)[-1:]]
    return written, [call for call in calls if call.split("(")[0] not in _CALLS.split(",")]


@pytest.mark.req("SE-30.f")
@pytest.mark.parametrize("own_value", ["", "0"])
def test_embedding_writes_no_file_and_opens_no_socket(tmp_path: Path, own_value: str) -> None:
    given = {"ORT_DISABLE_TELEMETRY": own_value} if own_value else {}
    written, network = trace(tmp_path, "-c", EMBED, **given)
    assert (written, network) == ([], [])
    assert list((tmp_path / "home").iterdir()) == []


@pytest.mark.req("SE-30.f")
def test_a_command_that_loads_the_model_writes_to_its_state_folder_alone(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    written, network = trace(tmp_path, "-m", "holdfast", "doctor", HOLDFAST_STATE_DIR=str(state))
    allowed = (str(state), str(tmp_path / "temporary"), "/dev/", "/proc/")
    assert [path for path in written if not path.startswith(allowed)] == []
    assert [call for call in network if re.match("(connect|send).*AF_INET", call) or "nscd" in call] == []
    assert list((tmp_path / "home").iterdir()) == []


def test_the_trace_shows_a_library_that_reports(tmp_path: Path) -> None:
    (tmp_path / "onnxruntime_stand_in.py").write_text("")
    written, network = trace(tmp_path, "-c", REPORT, PYTHONPATH=str(tmp_path))
    assert written == [str(tmp_path / "home" / ".cache"), str(tmp_path / "home" / ".cache" / "deviceid")]
    assert any("127.0.0.1" in call for call in network)
