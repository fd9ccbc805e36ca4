"""Figures for a person: rates between two moments, quantiles as Prometheus computes them, and a server that began anew."""

import pytest

from holdfast.adapters.prometheus import PrometheusMetrics
from holdfast.cli.commands.figures_text import Figures, describe_figures, quantile_of
from holdfast.observe.metrics import Reading
from holdfast.observe.model import CallStatus

INF = float("inf")


@pytest.mark.parametrize(
    ("share", "buckets", "expected"),
    [
        (0.5, [(10, 4.0), (20, 8.0), (INF, 8.0)], 10.0),
        (0.75, [(10, 4.0), (20, 8.0), (INF, 8.0)], 15.0),
        (0.99, [(10, 0.0), (20, 0.0), (INF, 5.0)], 20),
        (0.5, [(10, 2.0), (INF, 2.0)], 5.0),
        (0.5, [(10, 0.0), (INF, 0.0)], None),
        (0.5, [], None),
    ],
)
def test_a_quantile_lies_within_its_bucket(
    share: float, buckets: list[tuple[float, float]], expected: float | None
) -> None:
    assert quantile_of(share, buckets) == expected


def test_rates_are_those_between_the_two_moments() -> None:
    metrics = PrometheusMetrics({"file_write"})
    metrics.call_ended("file_write", CallStatus.OK, "", 5.0)
    before = metrics.snapshot()
    for _ in range(10):
        metrics.call_ended("file_write", CallStatus.ERROR, "CONFLICT", 40.0)
    figures = Figures(metrics.snapshot(), before, 2.0)

    assert figures.rate("holdfast_calls_total") == "5.0/s"
    assert figures.rate("holdfast_calls_total", status="ok") == "0.0/s"
    median = figures.quantile(0.5, "holdfast_call_duration_seconds")
    assert median is not None
    assert 0.025 < median <= 0.05


def test_a_counter_that_began_anew_is_counted_from_nothing() -> None:
    before = [{"labels": {}, "value": 500.0}]
    figures = Figures({"n_total": [{"labels": {}, "value": 4.0}]}, {"n_total": before}, 2.0)

    assert figures.rate("n_total") == "2.0/s"


def test_every_part_has_a_line_even_of_a_server_that_did_nothing_yet() -> None:
    metrics = PrometheusMetrics()
    metrics.watch(Reading.DATABASE_UP, lambda: 1.0)
    lines = describe_figures(Figures(metrics.snapshot(), {}, 0.0))

    assert [line.split()[0] for line in lines] == (
        "calls errors store index search changes reviews organiser doors process".split()
    )
    assert "p50 -" in lines[0]
    assert "none open" in lines[6]


def test_a_database_that_is_down_is_said_to_be_down() -> None:
    metrics = PrometheusMetrics()
    metrics.watch(Reading.DATABASE_UP, lambda: 0.0)
    lines = describe_figures(Figures(metrics.snapshot(), {}, 0.0))

    assert "the database does not answer" in lines[2]
    assert "queue unknown" in lines[3]
