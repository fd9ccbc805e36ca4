"""Turns what a server measured, as two snapshots of its figures, into lines for a person at a terminal."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from holdfast.cli.output import duration

Snapshot = Mapping[str, Sequence[Mapping[str, Any]]]
"""The figures of one moment: by name, a value for each combination of labels."""

_TOP_CODES = 3
_UNITS = (("GB", 1e9), ("MB", 1e6), ("KB", 1e3))


@dataclass(frozen=True)
class Figures:
    """The figures of now, and those of some seconds before; a counter that is smaller than before was reset."""

    now: Snapshot
    before: Snapshot
    seconds: float

    def value(self, name: str, **labels: str) -> float:
        """Return the sum of the values with these labels, 0 for none."""
        return _sum(self.now, name, labels)

    def has(self, name: str) -> bool:
        """Return whether the server knows a figure now."""
        return name in self.now

    def growth(self, name: str, **labels: str) -> float:
        """Return by how much a counter grew between the two moments."""
        now, before = _sum(self.now, name, labels), _sum(self.before, name, labels)
        return now - before if now >= before else now

    def rate(self, name: str, **labels: str) -> str:
        """Return the growth of a counter a second, as text."""
        return f"{self.growth(name, **labels) / self.seconds:.1f}/s" if self.seconds else "-"

    def by_label(self, name: str, label: str) -> dict[str, float]:
        """Return the values that are not 0, added up by one label."""
        totals: dict[str, float] = {}
        for entry in self.now.get(name, ()):
            key = entry["labels"][label]
            totals[key] = totals.get(key, 0.0) + entry["value"]
        return {key: total for key, total in totals.items() if total}

    def quantile(self, share: float, name: str) -> float | None:
        """Return the value that this share of what was measured between the two moments did not exceed, None without any."""
        bounds = {float(entry["labels"]["le"]) for entry in self.now.get(f"{name}_bucket", ())}
        counts = {bound: self.growth(f"{name}_bucket", le=_bound_text(self.now, name, bound)) for bound in bounds}
        return quantile_of(share, sorted(counts.items()))


def quantile_of(share: float, buckets: Sequence[tuple[float, float]]) -> float | None:
    """Return a quantile of cumulative buckets (bound, count) in the order of their bounds, as Prometheus computes it.

    None when they are empty; the largest finite bound for what lies beyond it.
    """
    if not buckets or not buckets[-1][1]:
        return None
    rank = share * buckets[-1][1]
    for (low, below), (high, count) in pairwise([(0.0, 0.0), *buckets]):
        if count >= rank and count > below:
            return low if high == float("inf") else low + (high - low) * (rank - below) / (count - below)
    return buckets[-1][0]


def describe_figures(figures: Figures) -> list[str]:
    """Return a line for each part of the server."""
    parts: list[tuple[str, Callable[[Figures], str]]] = [
        ("calls", _calls),
        ("errors", _errors),
        ("store", _store),
        ("index", _index),
        ("search", _search),
        ("changes", _changes),
        ("reviews", _reviews),
        ("organiser", _organiser),
        ("doors", _doors),
        ("process", _process),
    ]
    return [f"{name:<11}{describe(figures)}" for name, describe in parts]


def _calls(figures: Figures) -> str:
    spans = " ".join(
        f"p{round(share * 100)} {_milliseconds(figures.quantile(share, 'holdfast_call_duration_seconds'), 1000)}"
        for share in (0.5, 0.99)
    )
    busy = f"{figures.value('holdfast_calls_in_progress'):.0f} in progress"
    waiting = f"{figures.value('holdfast_calls_waiting'):.0f} waiting"
    return f"{figures.rate('holdfast_calls_total')}, {spans}, {busy}, {waiting}"


def _errors(figures: Figures) -> str:
    codes = figures.by_label("holdfast_calls_total", "code")
    codes.pop("", None)
    top = sorted(codes.items(), key=lambda item: -item[1])[:_TOP_CODES]
    summary = ", ".join(f"{code} {count:.0f}" for code, count in top)
    return f"{figures.rate('holdfast_calls_total', status='error')}{f'; since the start: {summary}' if summary else ''}"


def _store(figures: Figures) -> str:
    if not figures.value("holdfast_database_up"):
        return "the database does not answer"
    wait = _milliseconds(figures.quantile(0.99, "mcp_files_lock_wait_ms"))
    return f"{figures.rate('mcp_files_mutation_total')} changes, lock waited for p99 {wait}"


def _index(figures: Figures) -> str:
    lag = _milliseconds(figures.quantile(0.95, "mcp_files_index_visibility_lag_ms"))
    slo = f"found after p95 {lag} (at most {duration(figures.value('holdfast_index_slo_seconds'))} wanted)"
    if not figures.has("mcp_files_index_queue_depth"):
        return f"queue unknown, {slo}"
    oldest = figures.value("holdfast_index_oldest_job_seconds", stage="words")
    age = f", the oldest for {duration(oldest)}" if oldest >= 1 else ""
    return f"{figures.value('mcp_files_index_queue_depth'):.0f} in the queue{age}, {slo}"


def _search(figures: Figures) -> str:
    span = _milliseconds(figures.quantile(0.99, "mcp_files_search_latency_ms"))
    failed = figures.value("mcp_files_search_rerank_fail_total")
    without = f", {failed:.0f} without the reranker since the start" if failed else ""
    return f"{figures.rate('mcp_files_search_latency_ms_count')}, p99 {span}{without}"


def _changes(figures: Figures) -> str:
    used, limit = figures.value("holdfast_history_bytes"), figures.value("holdfast_history_limit_bytes")
    full = figures.value("holdfast_history_fullest_ratio")
    note = f", one folder's is {full:.0%} full" if full >= 0.5 else ""
    return f"{figures.rate('holdfast_changes_total')}, undo history {_bytes(used)} of {_bytes(limit)}{note}"


def _reviews(figures: Figures) -> str:
    states = figures.by_label("holdfast_reviews_open", "state")
    return ", ".join(f"{count:.0f} {state.replace('_', ' ')}" for state, count in states.items()) or "none open"


def _organiser(figures: Figures) -> str:
    plans = figures.value("holdfast_organiser_scans_total")
    return f"{figures.value('holdfast_organiser_scans_running'):.0f} scans running, {plans:.0f} plans since the start"


def _doors(figures: Figures) -> str:
    connections = figures.by_label("holdfast_connections", "door")
    summary = ", ".join(f"{count:.0f} {door}" for door, count in connections.items()) or "no connection"
    return f"{summary}; {figures.rate('holdfast_http_requests_total')} requests over HTTP"


def _process(figures: Figures) -> str:
    busy = figures.growth("process_cpu_seconds_total") / figures.seconds if figures.seconds else 0.0
    memory, disk = figures.value("process_resident_memory_bytes"), figures.value("holdfast_disk_free_bytes")
    dropped = figures.value("holdfast_call_log_dropped_total")
    note = f", {dropped:.0f} calls not recorded" if dropped else ""
    return f"{_bytes(memory)} of memory, {busy:.0%} of a core, {_bytes(disk)} of disk free{note}"


def _sum(snapshot: Snapshot, name: str, labels: Mapping[str, str]) -> float:
    entries = snapshot.get(name, ())
    return sum((float(entry["value"]) for entry in entries if labels.items() <= entry["labels"].items()), 0.0)


def _bound_text(snapshot: Snapshot, name: str, bound: float) -> str:
    return next(
        str(entry["labels"]["le"]) for entry in snapshot[f"{name}_bucket"] if float(entry["labels"]["le"]) == bound
    )


def _milliseconds(value: float | None, factor: float = 1.0) -> str:
    if value is None:
        return "-"
    milliseconds = value * factor
    return f"{milliseconds:.1f} ms" if milliseconds < 100 else f"{milliseconds / 1000:.1f} s"


def _bytes(count: float) -> str:
    for unit, size in _UNITS:
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} bytes"
