"""The log of a background server stays within its size while the server runs."""

import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import logging, sys
from holdfast.cli.startup import log_to_stderr
from holdfast.transport.state_folder import StateFolder
folder = StateFolder(sys.argv[1])
log_to_stderr(folder)
logging.getLogger().handlers[0].filters.clear()  # which let a place in the code write some lines a minute
for number in range(int(sys.argv[2])):
    logging.getLogger("holdfast.test").warning("line %d %s", number, "x" * 2000)
print("the end", flush=True)
"""


def test_a_log_that_grows_is_renewed_and_one_before_it_is_kept(tmp_path: Path) -> None:
    with (tmp_path / "server.log").open("ab") as log:
        subprocess.run([sys.executable, "-c", _PROGRAM, str(tmp_path), "9000"], stdout=log, stderr=log, check=True)
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == {"server.log", "server.log.1"}
    assert all(size < 5_010_000 for size in sizes.values())
    lines = (tmp_path / "server.log").read_text().splitlines()
    assert "line 8999 " in lines[-2]
    assert lines[-1] == "the end"


def test_another_file_is_never_renamed(tmp_path: Path) -> None:
    with (tmp_path / "elsewhere").open("ab") as log:
        subprocess.run([sys.executable, "-c", _PROGRAM, str(tmp_path), "3000"], stdout=log, stderr=log, check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["elsewhere"]


def test_a_line_that_repeats_is_left_out_and_counted(tmp_path: Path) -> None:
    program = _PROGRAM.replace("filters.clear()", "filters").replace("sys.argv[2]", '"1000"') + (
        "logging.getLogger('holdfast.test').warning('another line')\n"
        "limit = logging.getLogger().handlers[0].filters[0]\n"
        "record = logging.makeLogRecord({'pathname': '<string>', 'lineno': 9, 'created': 4e9, 'levelno': 30})\n"
        "assert limit.filter(record) and record.left_out == 980, vars(record)\n"
    )
    with (tmp_path / "server.log").open("ab") as log:
        subprocess.run([sys.executable, "-c", program, str(tmp_path)], stdout=log, stderr=log, check=True)
    lines = (tmp_path / "server.log").read_text().splitlines()
    assert sum("line " in line and "x" in line for line in lines) == 20
    assert sum("another line" in line for line in lines) == 1
