"""Figures: every one is counted for real, a slow one holds nobody up, and one that fails costs no other."""

import inspect
import itertools
import threading
import time

from holdfast.adapters.prometheus import PrometheusMetrics
from holdfast.observe.metrics import Metrics, Reading, SlowReading
from holdfast.observe.model import CallStatus


def text_of(metrics: Metrics) -> str:
    return metrics.expose("")[0].decode()


def test_everything_that_can_be_counted_is_counted() -> None:
    methods = {name for name, _ in inspect.getmembers(Metrics, inspect.isfunction) if not name.startswith("_")}

    assert {name for name in methods if getattr(PrometheusMetrics, name) is getattr(Metrics, name)} == set()


def test_the_base_class_counts_nothing_and_takes_everything() -> None:
    metrics = Metrics()
    metrics.call_began()
    metrics.call_ended("file_write", CallStatus.OK, "", 3.0)
    metrics.watch(Reading.SCANS_RUNNING, lambda: 1)

    assert metrics.expose("")[0] == b""
    assert metrics.snapshot() == {}


def test_a_call_is_counted_by_tool_status_and_code() -> None:
    metrics = PrometheusMetrics({"file_write"})
    for code in ("", "", "RESOURCE_BUSY"):
        metrics.call_began()
        metrics.call_ended("file_write", CallStatus.ERROR if code else CallStatus.OK, code, 20.0)
    text = text_of(metrics)

    assert 'holdfast_calls_total{code="",status="ok",tool="file_write"} 2.0' in text
    assert 'holdfast_calls_total{code="RESOURCE_BUSY",status="error",tool="file_write"} 1.0' in text
    assert 'mcp_files_mutation_total{status="ok",tool="file_write"} 2.0' in text
    assert 'holdfast_call_duration_seconds_sum{tool="file_write"} 0.06' in text
    assert "holdfast_calls_in_progress 0.0" in text


def test_only_tools_that_change_the_store_are_mutations() -> None:
    metrics = PrometheusMetrics({"file_write"})
    metrics.call_ended("file_read", CallStatus.OK, "", 1.0)

    assert 'tool="file_read"' in text_of(metrics)
    assert 'mcp_files_mutation_total{status="ok",tool="file_write"} 0.0' in text_of(metrics)
    assert 'mcp_files_mutation_total{status="ok",tool="file_read"}' not in text_of(metrics)


def test_calls_of_many_threads_are_all_counted() -> None:
    metrics = PrometheusMetrics()

    def call() -> None:
        for _ in range(500):
            metrics.call_began()
            metrics.call_ended("read_file", CallStatus.OK, "", 1.0)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 'holdfast_calls_total{code="",status="ok",tool="read_file"} 4000.0' in text_of(metrics)


def test_a_figure_that_cannot_be_read_is_left_out_and_costs_no_other() -> None:
    metrics = PrometheusMetrics()
    metrics.watch(Reading.SCANS_RUNNING, lambda: 1 // 0)
    metrics.watch(Reading.REVIEWS_OPEN, lambda: {("pending",): 2.0})
    metrics.watch(Reading.HISTORY_BYTES, lambda: None)
    text = text_of(metrics)

    assert 'holdfast_reviews_open{state="pending"} 2.0' in text
    assert "holdfast_organiser_scans_running" not in text
    assert "holdfast_history_bytes" not in text


def test_every_reading_can_be_shown() -> None:
    metrics = PrometheusMetrics()
    for reading in Reading:
        metrics.watch(reading, dict)

    assert all(f"# HELP {reading.removesuffix('_total')}" in text_of(metrics) for reading in Reading)


def test_the_snapshot_says_what_the_text_says() -> None:
    metrics = PrometheusMetrics()
    metrics.watch(Reading.REVIEWS_OPEN, lambda: {("pending",): 2.0})
    metrics.search_part_failed("reranker")
    figures = metrics.snapshot()

    assert figures["holdfast_reviews_open"] == [{"labels": {"state": "pending"}, "value": 2.0}]
    assert figures["mcp_files_search_rerank_fail_total"] == [{"labels": {}, "value": 1.0}]
    assert [row["value"] for row in figures["holdfast_search_part_failures_total"]] == [0.0, 0.0, 1.0, 0.0]
    assert {"labels": {"part": "reranker"}, "value": 1.0} in figures["holdfast_search_part_failures_total"]


def test_two_servers_of_one_process_do_not_count_together() -> None:
    first, second = PrometheusMetrics(), PrometheusMetrics()
    first.review_opened()

    assert "holdfast_reviews_opened_total 1.0" in text_of(first)
    assert "holdfast_reviews_opened_total 0.0" in text_of(second)


def test_a_slow_reading_is_asked_once_in_its_seconds_however_often_it_is_wanted() -> None:
    numbers = itertools.count(1)
    reading = SlowReading(lambda: next(numbers), seconds=0.2)

    values = {reading.latest() for _ in range(200)}
    assert values == {1}
    time.sleep(0.25)
    assert reading.latest() == 2


def test_a_reading_that_hangs_holds_nobody_up_and_has_no_value() -> None:
    release = threading.Event()
    reading = SlowReading(lambda: release.wait(20), seconds=0.05, patience_seconds=0.1)
    began = time.monotonic()

    assert [reading.latest() for _ in range(5)] == [None] * 5
    assert time.monotonic() - began < 1.0
    release.set()


def test_a_reading_that_fails_has_no_value_until_it_works_again() -> None:
    is_broken = True

    def read() -> str:
        if is_broken:
            raise OSError
        return "here"

    reading = SlowReading(read, seconds=0.0)
    assert reading.latest() is None
    is_broken = False
    assert reading.latest() == "here"
