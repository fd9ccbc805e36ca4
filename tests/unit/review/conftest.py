"""The desk of these tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.review.desk import Desk, opened_desk


@pytest.fixture
def desk(root: Path, tmp_path: Path) -> Iterator[Desk]:
    (root / "a.txt").write_bytes(b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n")
    with opened_desk(root, tmp_path / "state") as opened:
        yield opened
