"""The bulletin is bounded, in order, never waits, and says when a reader has missed something."""

import threading

import pytest

from holdfast.bulletin import Bulletin, NewsKind


def test_a_reader_gets_what_came_after_the_last_entry_that_it_has() -> None:
    bulletin = Bulletin()
    bulletin.tell(NewsKind.REVIEW_OPENED, review_id="a", action="PENDING", round=1)
    seq = bulletin.newest_seq
    bulletin.tell(NewsKind.CHANGE_MADE, id="b", status="EXECUTED", kind="edit")

    news = bulletin.read_after(seq)

    assert news is not None
    assert [(entry.seq, entry.kind, dict(entry.fields)) for entry in news] == [
        (2, NewsKind.CHANGE_MADE, {"id": "b", "status": "EXECUTED", "kind": "edit"})
    ]
    assert bulletin.read_after(bulletin.newest_seq) == []


def test_a_reader_that_has_missed_entries_is_told_so() -> None:
    bulletin = Bulletin(max_entries=3)
    for index in range(5):
        bulletin.tell(NewsKind.CHANGE_MADE, id=str(index))

    assert bulletin.read_after(1) is None
    assert [entry.seq for entry in bulletin.read_after(2) or ()] == [3, 4, 5]


def test_a_number_of_another_server_is_no_place_in_this_bulletin() -> None:
    assert Bulletin().read_after(7) is None


def test_progress_takes_the_place_of_earlier_progress_of_the_plan_so_that_it_pushes_nothing_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bulletin, now = Bulletin(max_entries=3), [100.0]
    monkeypatch.setattr("holdfast.bulletin.time.monotonic", lambda: now[0])
    bulletin.tell(NewsKind.REVIEW_OPENED, review_id="a")
    for done in range(50):
        now[0] += 1.0
        bulletin.tell_progress("p", "scan", done, None, "Reading files")

    assert [(entry.kind, entry.fields.get("done")) for entry in bulletin.read_after(0) or ()] == [
        (NewsKind.REVIEW_OPENED, None),
        (NewsKind.PLAN_PROGRESS, 49),
    ]


def test_progress_is_told_four_times_a_second_at_most_and_its_end_always(monkeypatch: pytest.MonkeyPatch) -> None:
    bulletin, now, told = Bulletin(), [100.0], []
    monkeypatch.setattr("holdfast.bulletin.time.monotonic", lambda: now[0])
    with bulletin.subscribe(lambda: told.append(bulletin.newest_seq)):
        for done in range(1000):
            now[0] += 0.001
            bulletin.tell_progress("p", "execute", done, 1000, "")
        bulletin.tell_progress("p", "execute", 1000, 1000, "")

    assert 4 <= len(told) <= 6
    assert [entry.fields["done"] for entry in bulletin.read_after(0) or ()] == [1000]


def test_a_listener_that_fails_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    bulletin, told = Bulletin(), []

    def fail() -> None:
        raise RuntimeError("gone")

    with bulletin.subscribe(fail), bulletin.subscribe(lambda: told.append(1)):
        bulletin.tell(NewsKind.CHANGE_MADE, id="a")

    assert told == [1]
    assert "RuntimeError" in caplog.text
    bulletin.tell(NewsKind.CHANGE_MADE, id="b")
    assert told == [1]


def test_many_threads_tell_at_once_and_every_entry_has_its_own_number() -> None:
    bulletin = Bulletin(max_entries=10_000)

    def tell() -> None:
        for _ in range(500):
            bulletin.tell(NewsKind.CHANGE_MADE, id="x")

    threads = [threading.Thread(target=tell) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [entry.seq for entry in bulletin.read_after(0) or ()] == list(range(1, 4001))
