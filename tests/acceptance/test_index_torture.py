"""Half a minute of torture for the index workers: kill -9 under write load, then the index equals the files exactly.

`python -m tests.torture.workers` does the same for as long as you like, and hunts its mutants by chance. Here each
mutant is walked through the one order of events that shows its fault, and the same checker has to notice.
"""

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.search.index import Indexer
from holdfast.store.model import ClaimedJob, Stage
from holdfast.store.ports import IndexQueue
from tests.helpers.databases import Backend, postgres_backend, sqlite_backend
from tests.torture.indexer import MUTANTS, Letters, drain, restored
from tests.torture.workers import TENANTS, Plan, Report, compare, run

ENGINES = ["sqlite", "postgres"]
ME = TENANTS[0]


@pytest.mark.timeout(200)
@pytest.mark.req("SE-02.b", "SE-04.b", "SE-03.b")
@pytest.mark.parametrize("engine", ENGINES)
def test_after_kills_and_a_drain_the_index_equals_the_files(engine: str, request: pytest.FixtureRequest) -> None:
    server_url = request.getfixturevalue("postgres_server_url") if engine == "postgres" else None
    report = run(Plan(engine, seconds=10.0, kills=6), server_url)
    assert report.problems == [], str(report)
    assert report.kills == 6
    assert report.writes > 20 and report.chunks > 5, str(report)


class Slow(Indexer):
    """An indexer whose first reading is followed by whatever a test wants to happen in between."""

    meanwhile = staticmethod(lambda: None)

    def index_words(self, jobs: list[ClaimedJob]) -> list[bool]:  # type: ignore[override]
        files = self._load(ME.apikey_hash, jobs)
        self.meanwhile()
        self._index.put_words(ME.apikey_hash, files, "holdfast-1", self._now())
        return [False for _ in files]


def soon() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=1)


def wrong_after_a_write_in_between(backend: Backend, *, retaken: bool) -> list[str]:
    """Return what the checker says after a write came between a worker's reading and its writing.

    `retaken`: its lease ended too, and another worker indexed the new state and finished before it.
    """
    store, queue, index = backend.store(), backend.open_queue(), backend.open_index()
    drain(queue, index, 1000)
    store.write(ME, "p", "/a.md", "old text")
    slow = Slow(index, Letters())
    (job,) = queue.claim(10, 1, soon())

    def meanwhile() -> None:
        store.write(ME, "p", "/a.md", " and new text")
        if retaken:
            later = soon() + timedelta(minutes=5)
            (again,) = queue.claim(10, 60_000, later)
            (owed,) = Indexer(index, Letters()).index_words([again])
            assert queue.finish(again, later, Stage.MEANING if owed else None)

    slow.meanwhile = meanwhile
    slow.index_words([job])
    _finished(queue, job)
    drain(queue, index, 1000)
    report = Report(Plan(backend.name, 0, 0))
    compare(report, store, index, [])
    return report.problems


def _finished(queue: IndexQueue, job: ClaimedJob) -> None:
    queue.finish(job, soon())


@pytest.mark.req("SE-03.a", "SE-03.b")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("mutant", "retaken"), [("trusts its job", False), ("writes what it read", True)], ids=["job", "read"]
)
def test_a_worker_without_a_version_guard_is_caught(
    engine: str, mutant: str, retaken: bool, request: pytest.FixtureRequest
) -> None:
    if engine == "sqlite":
        opened = sqlite_backend(request.getfixturevalue("tmp_path") / "store")
    else:
        opened = postgres_backend(request.getfixturevalue("postgres_url"))
    with opened as backend:
        assert wrong_after_a_write_in_between(backend, retaken=retaken) == []
        with restored():
            MUTANTS[mutant]()
            assert wrong_after_a_write_in_between(backend, retaken=retaken) != []
