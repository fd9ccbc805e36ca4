"""Lag and speed of indexing, and the signal that wakes the lanes."""

import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from holdfast.search.model import Vector
from holdfast.secret import Secret
from holdfast.store.model import Stage
from holdfast.worker.indexing_stats import IndexingStats, TimedEmbedder
from holdfast.worker.service import WakeUp

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_percentiles_are_values_that_were_seen() -> None:
    stats = IndexingStats()
    stats.record_visible(Stage.WORDS, [NOW - timedelta(milliseconds=value) for value in range(1, 101)], NOW)
    lag = stats.lag(Stage.WORDS)
    assert (lag.count, lag.p50_ms, lag.p95_ms) == (100, 50.0, 95.0)
    assert stats.lag(Stage.MEANING).count == 0


def test_one_write_is_its_own_percentile() -> None:
    stats = IndexingStats()
    stats.record_visible(Stage.MEANING, [NOW - timedelta(seconds=2)], NOW)
    lag = stats.lag(Stage.MEANING)
    assert (lag.count, lag.p50_ms, lag.p95_ms) == (1, 2000.0, 2000.0)


def test_what_is_older_than_the_window_does_not_count() -> None:
    stats = IndexingStats(window_seconds=0.05)
    stats.record_visible(Stage.WORDS, [NOW], NOW)
    stats.record_embedding(5, 1.0)
    time.sleep(0.1)
    assert stats.lag(Stage.WORDS).count == 0
    assert stats.speed().texts == 0


def test_the_speed_is_that_of_the_time_spent_embedding() -> None:
    stats = IndexingStats()
    stats.record_embedding(10, 2.0)
    stats.record_embedding(20, 1.0)
    assert (stats.speed().texts, stats.speed().per_second) == (30, 10.0)


def test_an_embedder_is_timed_and_stays_itself() -> None:
    class One:
        model = "m"
        needs_key = True

        def embed(self, texts: Sequence[str], key: Secret | None, check: Callable[[], None]) -> list[Vector]:
            return [[1.0]] * len(texts)

    stats = IndexingStats()
    timed = TimedEmbedder(One(), stats)
    assert (timed.model, timed.needs_key) == ("m", True)
    assert timed.embed(["a", "b"], None, lambda: None) == [[1.0], [1.0]]
    assert stats.speed().texts == 2


def test_a_signal_sent_during_the_work_is_not_lost() -> None:
    wake_up = WakeUp()
    known_count = wake_up.count
    wake_up.send()
    begun = time.monotonic()
    wake_up.wait(known_count, 5)
    assert time.monotonic() - begun < 1
    wake_up.wait(wake_up.count, 0.01)


def test_a_signal_wakes_everyone() -> None:
    wake_up = WakeUp()
    woken = [threading.Thread(target=wake_up.wait, args=(wake_up.count, 20)) for _ in range(3)]
    for thread in woken:
        thread.start()
    time.sleep(0.05)
    wake_up.send()
    for thread in woken:
        thread.join(5)
    assert not any(thread.is_alive() for thread in woken)
