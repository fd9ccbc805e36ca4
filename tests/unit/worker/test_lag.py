"""The figures of freshness, and the bell that wakes the lanes."""

import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from holdfast.search.model import Vector
from holdfast.secret import Secret
from holdfast.store.model import Stage
from holdfast.worker.lag import Lags, TimedEmbedder
from holdfast.worker.wakeup import Bell

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_percentiles_are_values_that_were_seen() -> None:
    lags = Lags()
    lags.visible(Stage.WORDS, [NOW - timedelta(milliseconds=value) for value in range(1, 101)], NOW)
    lag = lags.lag(Stage.WORDS)
    assert (lag.count, lag.p50_ms, lag.p95_ms) == (100, 50.0, 95.0)
    assert lags.lag(Stage.MEANING).count == 0


def test_one_write_is_its_own_percentile() -> None:
    lags = Lags()
    lags.visible(Stage.MEANING, [NOW - timedelta(seconds=2)], NOW)
    lag = lags.lag(Stage.MEANING)
    assert (lag.count, lag.p50_ms, lag.p95_ms) == (1, 2000.0, 2000.0)


def test_what_is_older_than_the_window_does_not_count() -> None:
    lags = Lags(window_seconds=0.05)
    lags.visible(Stage.WORDS, [NOW], NOW)
    lags.embedded(5, 1.0)
    time.sleep(0.1)
    assert lags.lag(Stage.WORDS).count == 0
    assert lags.speed().texts == 0


def test_the_speed_is_that_of_the_time_spent_embedding() -> None:
    lags = Lags()
    lags.embedded(10, 2.0)
    lags.embedded(20, 1.0)
    assert (lags.speed().texts, lags.speed().per_second) == (30, 10.0)


def test_an_embedder_is_timed_and_stays_itself() -> None:
    class One:
        model = "m"
        needs_key = True

        def embed(self, texts: Sequence[str], key: Secret | None, check: Callable[[], None]) -> list[Vector]:
            return [[1.0]] * len(texts)

    lags = Lags()
    timed = TimedEmbedder(One(), lags)
    assert (timed.model, timed.needs_key) == ("m", True)
    assert timed.embed(["a", "b"], None, lambda: None) == [[1.0], [1.0]]
    assert lags.speed().texts == 2


def test_a_ring_that_came_during_the_work_is_not_missed() -> None:
    bell = Bell()
    heard = bell.rings
    bell.ring()
    begun = time.monotonic()
    bell.wait(heard, 5)
    assert time.monotonic() - begun < 1
    bell.wait(bell.rings, 0.01)


def test_a_ring_wakes_everyone() -> None:
    bell = Bell()
    woken = [threading.Thread(target=bell.wait, args=(bell.rings, 20)) for _ in range(3)]
    for thread in woken:
        thread.start()
    time.sleep(0.05)
    bell.ring()
    for thread in woken:
        thread.join(5)
    assert not any(thread.is_alive() for thread in woken)
