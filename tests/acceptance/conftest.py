"""Fixtures of the acceptance tests: the project store on each database in turn, and the reference server beside ours."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.helpers.agent import LEGACY, Agent
from tests.helpers.databases import postgres_database
from tests.helpers.peer import Pair, Reference, Side
from tests.helpers.stores import OPEN, SMALL, Deployment, Files, deployed


@pytest.fixture(
    scope="session",
    params=[pytest.param(name, marks=pytest.mark.xdist_group(f"store on {name}")) for name in ("sqlite", "postgres")],
)
def database_url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """Give the address of each database in turn, None for SQLite; each database has one test process to itself."""
    if request.param == "sqlite":
        yield None
        return
    with postgres_database(request.getfixturevalue("postgres_server_url"), migrated=False) as url:
        yield url


@pytest.fixture(scope="session")
def place(database_url: str | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Give a server with the default limits, where every long key is a tenant."""
    with deployed(tmp_path_factory.mktemp("place"), OPEN, database_url) as running:
        yield running


@pytest.fixture(scope="session")
def small(database_url: str | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Give a server with small limits; on PostgreSQL it is a second instance on the database of the first."""
    settings = {**OPEN, "mcp": {"files": SMALL}}
    with deployed(tmp_path_factory.mktemp("small"), settings, database_url) as running:
        yield running


@pytest.fixture
def project() -> str:
    """Give a project that nobody has used."""
    return f"p-{uuid4().hex}"


@pytest.fixture
def files(place: Deployment, project: str) -> Files:
    """Give the store's tools for one project of the local user, on each database in turn."""
    return Files(place.agent, project)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory, state_dir: Path) -> Iterator[Pair]:
    """Give both servers, each with its own allowed directory."""
    base = tmp_path_factory.mktemp("parity")
    ours, theirs = base / "ours", base / "theirs"
    ours.mkdir()
    theirs.mkdir()
    with Agent([ours], state_dir, mode=LEGACY) as agent, Reference(theirs) as reference:
        yield Pair(Side(agent, ours), Side(reference, theirs))


@pytest.fixture
def pair(sides: Pair, tmp_path: Path) -> Pair:
    """Give both servers, each with an empty folder of this test."""
    made = [Side(side.agent, side.folder / tmp_path.name) for side in (sides.ours, sides.theirs)]
    for side in made:
        side.folder.mkdir()
    return Pair(*made)
