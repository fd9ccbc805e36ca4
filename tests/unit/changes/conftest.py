"""The world of these tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.changes.world import World, opened_world


@pytest.fixture
def world(root: Path, tmp_path: Path) -> Iterator[World]:
    with opened_world([root], tmp_path / "state") as opened:
        yield opened
