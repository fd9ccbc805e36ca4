"""Fixtures for every test: a state folder with its server, and agents that connect to it."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.helpers.agent import LEGACY, MODERN, Agent, command
from tests.helpers.databases import postgres_database, postgres_server

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts its background jobs so, and whatever the tests start would never see a Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile("busy machine", deadline=None)
settings.load_profile("busy machine")  # how long an example takes says how busy the machine is, not what the code does


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the attacks that race last longer than in everyday runs."""
    parser.addoption("--attack-seconds", type=float, default=4.0, help="how long an attack by races lasts (4)")


@pytest.fixture(scope="session")
def attack_seconds(request: pytest.FixtureRequest) -> float:
    """Give the seconds that an attack by races lasts."""
    return float(request.config.getoption("--attack-seconds"))


def stop_server(state: Path) -> None:
    """End the background server of a state folder, if one is up."""
    environment = {**os.environ, "HOLDFAST_STATE_DIR": str(state)}
    subprocess.run(command("stop"), env=environment, check=False, capture_output=True, timeout=30)


@pytest.fixture(scope="session")
def state_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give one state folder to the whole session; its background server is ended with it."""
    folder = tmp_path_factory.mktemp("state")
    folder.chmod(0o700)
    yield folder
    stop_server(folder)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give an empty allowed directory with a neighbour that is not allowed."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def agent(root: Path, state_dir: Path) -> Iterator[Agent]:
    """Give a client of the newest protocol, connected by the relay, with `root` as its one root."""
    with Agent([root], state_dir, mode=MODERN) as connected:
        yield connected


@pytest.fixture
def legacy_agent(root: Path, state_dir: Path) -> Iterator[Agent]:
    """Give a client of the handshake protocol, connected by the relay, with `root` as its one root."""
    with Agent([root], state_dir, mode=LEGACY) as connected:
        yield connected


@pytest.fixture
def ended_processes() -> Iterator[list["subprocess.Popen[bytes]"]]:
    """Take processes that a test starts, and end what is left of them."""
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait(timeout=10)


@pytest.fixture
def ended_state(tmp_path: Path) -> Iterator[Path]:
    """Give a state folder of the test's own, inside `tmp_path`; its server is ended with the test."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    yield folder
    stop_server(folder)


@pytest.fixture(scope="session")
def postgres_server_url() -> Iterator[str]:
    """Give a PostgreSQL server without our tables."""
    with postgres_server() as url:
        yield url


@pytest.fixture(scope="session")
def postgres_url(postgres_server_url: str) -> Iterator[str]:
    """Give a migrated database that all tests share; each has tenants of its own."""
    with postgres_database(postgres_server_url) as url:
        yield url
