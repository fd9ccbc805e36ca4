"""Fixtures of the contract suites: each database in turn."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.auth.context import AuthContext
from holdfast.store.service import Store
from tests.helpers.databases import Backend, new_caller, postgres_backend, sqlite_backend


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
