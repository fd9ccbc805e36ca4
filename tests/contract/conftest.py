"""Fixtures of the contract suites: each database in turn."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.auth.context import AuthContext
from holdfast.store.service import Store
from tests.helpers.databases import (
    Backend,
    new_caller,
    postgres_backend,
    postgres_database,
    postgres_server,
    sqlite_backend,
)


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


@pytest.fixture(params=["sqlite", "postgres"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """Give each database in turn."""
    if request.param == "sqlite":
        with sqlite_backend(tmp_path / "store") as opened:
            yield opened
    else:
        with postgres_backend(request.getfixturevalue("postgres_url")) as opened:
            yield opened


@pytest.fixture
def store(backend: Backend) -> Store:
    """Give a store with the default limits."""
    return backend.store()


@pytest.fixture
def me() -> AuthContext:
    """Give a tenant that nobody has seen before."""
    return new_caller()
