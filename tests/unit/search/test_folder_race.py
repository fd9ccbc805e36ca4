"""The comparison of a passage with its file, raced where nothing else keeps old text away: no scan, nobody who watches."""

import time
from pathlib import Path

import pytest

from holdfast.search.folders import indexed_root
from holdfast.search.folders import service as folder_service
from holdfast.search.folders.model import FolderHit
from holdfast.search.folders.verify_passages import PassageVerifier, VerifiedHits
from holdfast.search.model import Hit
from tests.helpers.beacons import Beacons, round_of
from tests.helpers.searcher import Searcher, nobody_watches

pytestmark = pytest.mark.timeout(120)

ROUNDS = 300
SOME = 30


def raced(state: Path, root: Path, rounds: int) -> tuple[int, int]:
    """Search while files change; returns how many passages came, and how many of them were old."""
    seen = old = 0
    with Searcher(state, watcher=nobody_watches) as searcher, Beacons(root) as beacons:
        for _ in range(rounds):
            time.sleep(0.01)
            before = dict(beacons.done)
            for hit in searcher.find("beacon round", root).hits:
                seen += 1
                old += round_of(hit.text) < before[Path(hit.path).name]
    return seen, old


@pytest.fixture(autouse=True)
def _one_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexed_root, "QUICK_SCAN_SECONDS", 0.0)
    monkeypatch.setattr(indexed_root, "SCAN_REST_FACTOR", 10_000_000)
    monkeypatch.setattr(folder_service, "MAX_REREAD_SECONDS", 0.05)


def test_no_passage_is_older_than_its_file(tmp_path: Path, root: Path) -> None:
    seen, old = raced(tmp_path, root, ROUNDS)
    assert seen > ROUNDS / 2
    assert old == 0


def test_without_the_comparison_the_race_finds_old_text(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def believe(_verifier: PassageVerifier, hit: Hit, path: str, verified: VerifiedHits) -> None:
        verified.hits.append(FolderHit(path, 1, hit.text, hit.score))

    monkeypatch.setattr(PassageVerifier, "verify_hit", believe)
    _, old = raced(tmp_path, root, SOME)
    assert old > 0
