"""Fixtures of the organiser's tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.messy import Messy, messy_folder


@pytest.fixture
def messy(tmp_path: Path) -> Iterator[Messy]:
    """Give an empty folder to be organised."""
    with messy_folder(tmp_path) as folder:
        yield folder
