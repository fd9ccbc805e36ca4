"""An index whose maker is killed in the middle, again and again, and then made to the end."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.helpers.doors import until
from tests.helpers.searcher import Searcher
from tests.helpers.trees import plant

pytestmark = pytest.mark.timeout(120)

FILES = 1000
TOP = Path(__file__).parents[3]
MAKER = """
import sys
from pathlib import Path
from tests.helpers.searcher import Searcher
with Searcher(Path(sys.argv[1])) as searcher:
    searcher.settle(Path(sys.argv[2]))
    sys.stdin.read()
"""


def files_in(folder: Path) -> int:
    """Return how many files the one index in a folder holds."""
    found = list(folder.glob("*.db"))
    if not found:
        return 0
    with closing(sqlite3.connect(found[0])) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'mcp_files'").fetchone():
            return 0
        (count,) = connection.execute("SELECT count(*) FROM mcp_files").fetchone()
    return int(count)


def test_what_was_in_stays_in_and_the_rest_is_read_by_the_next(tmp_path: Path, root: Path) -> None:
    plant(root, {f"{number:04d}.md": f"harbour {number} " * 300 for number in range(FILES)})
    held = []
    for enough in (1, 200, 400):
        maker = subprocess.Popen(
            [sys.executable, "-c", MAKER, str(tmp_path), str(root)], stdin=subprocess.PIPE, cwd=TOP
        )
        with maker:
            until("so many files are in", lambda enough=enough: files_in(tmp_path / "folders") >= enough, 60)
            maker.kill()
        held.append(files_in(tmp_path / "folders"))
    assert held == sorted(held)
    assert held[0] < FILES, "it was killed in the middle"
    with Searcher(tmp_path) as searcher:
        searcher.settle(root)
        assert len(searcher.names("harbour", root, limit=20)) == 20
        assert searcher.names("harbour 999", root, limit=1) == ["0999.md"]
    assert files_in(tmp_path / "folders") == FILES
