"""Fixtures: the conformance build, the bridge in front of its stream door, and the product serving a folder."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.helpers.agent import command

TOP = Path(__file__).parents[2]
_START_SECONDS = 30


@dataclass(frozen=True)
class Served:
    """A running server: its address, its key, and its state folder, by which relays find it."""

    url: str
    state: Path
    root: Path

    @property
    def key(self) -> str:
        """Return the agent's token."""
        return (self.state / "agent.token").read_text().strip()


@contextmanager
def running(arguments: Sequence[str], state: Path) -> Iterator[str]:
    """Run a program that prints its address in one line, and end it."""
    log = state.parent / f"{state.name}.log"
    with log.open("ab") as errors:
        process = subprocess.Popen(
            arguments,
            cwd=TOP,
            env={**os.environ, "HOLDFAST_STATE_DIR": str(state)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        assert address, log.read_text()[-2000:]
        yield address
    finally:
        process.terminate()
        process.stdout.close()
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=5)


def _state(factory: pytest.TempPathFactory) -> Path:
    state = factory.mktemp("protocol") / "state"
    state.mkdir(mode=0o700)
    return state


@pytest.fixture(scope="session")
def conformance_build(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Give our own server with the official suite's tools behind its doors."""
    state = _state(tmp_path_factory)
    with running([sys.executable, "-m", "tests.protocol.serve_fixture", str(state)], state) as url:
        yield Served(url, state, Path("/"))


@pytest.fixture(scope="session")
def bridge(conformance_build: Served) -> Iterator[str]:
    """Give the address by which the suite reaches the stream door of the conformance build."""
    with running([sys.executable, "-m", "tests.protocol.bridge"], conformance_build.state) as url:
        yield url


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Give the product itself, serving a folder over HTTP and, through its state folder, to relays."""
    state = _state(tmp_path_factory)
    root = tmp_path_factory.mktemp("served") / "project"
    root.mkdir()
    log = state.parent / "serve.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command("serve", str(root), "--port", "0"),
            env={**os.environ, "HOLDFAST_STATE_DIR": str(state)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
    try:
        yield Served(_announced(process, log), state, root)
    finally:
        process.terminate()
        process.wait(timeout=15)


def _announced(process: "subprocess.Popen[bytes]", log: Path) -> str:
    """Return the address that `serve` tells; it is told once the doors are open."""
    ends_at = time.monotonic() + _START_SECONDS
    while time.monotonic() < ends_at and process.poll() is None:
        for word in log.read_text().split():
            if word.startswith("http://") and word.endswith("/mcp"):
                return word.removesuffix("/mcp")
        time.sleep(0.05)
    raise AssertionError(f"serve did not come up:\n{log.read_text()[-2000:]}")
