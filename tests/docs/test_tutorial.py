"""The tutorial works: its commands are run in order, as a reader would."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
BLOCK = re.compile(r"```(sh|python)(?: title=(\S+))?\n(.*?)```", re.DOTALL)


@pytest.mark.req("SV-53")
def test_the_tutorial_can_be_followed(tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}",
        "HOME": str(tmp_path),
    }
    output = ""
    try:
        for language, title, block in BLOCK.findall((TOP / "docs" / "tutorial.md").read_text()):
            if language == "python":
                (folder / title).write_text(block)
                continue
            ran = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", block],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert ran.returncode == 0, f"{block}\n{ran.stdout}\n{ran.stderr}"
            output += ran.stdout
    finally:
        stop = [sys.executable, "-m", "holdfast", "stop"]
        subprocess.run(stop, env=environment, capture_output=True, timeout=30, check=False)

    assert "Access denied: /etc/passwd is outside allowed directories" in output
    assert "coffee" in output
    assert (folder / "demo" / "shopping.txt").read_text() == "milk\nbread\ntea\n"
    assert "settings.folders.read_only" in output
