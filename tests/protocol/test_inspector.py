"""The official inspector's command line: its portability check of the tool list, and a call of a real tool."""

import json
import sys
from pathlib import Path

import pytest

from tests.protocol import node
from tests.protocol.conftest import Served

each_era = pytest.mark.parametrize("era", ["legacy", "modern"])
each_door = pytest.mark.parametrize("door", ["stdio", "http"])


def target(served: Served, door: str) -> list[str]:
    """Return how the inspector reaches a server; it hands on no environment but what it is told to."""
    if door == "http":
        return [f"{served.url}/mcp", "--transport", "http", "--header", f"Authorization: Bearer {served.key}"]
    state = ["-e", f"HOLDFAST_STATE_DIR={served.state}"]
    return [*state, sys.executable, "-m", "holdfast", "stdio", str(served.root)]


@pytest.mark.req("SV-04.a", "SV-06.d")
@each_door
@each_era
def test_the_inspector_finds_no_fault_in_the_tool_list(served: Served, tmp_path: Path, door: str, era: str) -> None:
    options = ["--protocol-era", era, "--method", "tools/list", "--strict", "--format", "json"]
    finished_run = node.inspector(*target(served, door), *options, home=tmp_path)
    assert (finished_run.returncode, finished_run.stderr) == (0, "")
    assert "read_text_file" in {tool["name"] for tool in json.loads(finished_run.stdout)["result"]["tools"]}


@pytest.mark.req("SV-04.a")
@each_door
@each_era
def test_the_inspector_reads_a_file(served: Served, tmp_path: Path, door: str, era: str) -> None:
    (served.root / "inspected.txt").write_text("Look: ß 🎉\n")
    call = ["--method", "tools/call", "--tool-name", "read_text_file", "--tool-arg", "path=inspected.txt"]
    options = ["--protocol-era", era, *call, "--format", "json", "-q"]
    finished_run = node.inspector(*target(served, door), *options, home=tmp_path)
    assert finished_run.returncode == 0, finished_run.stderr
    assert json.loads(finished_run.stdout)["result"]["content"] == [{"type": "text", "text": "Look: ß 🎉\n"}]
