"""Rows of a Markdown table, each with its bar and whether the bar was met."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

HEADER = ("what", "Holdfast", "compared with", "ratio (p95)", "bar", "")


@dataclass(frozen=True)
class Sample:
    """The repeated measurements of one thing on one side, with the bytes of one answer."""

    values: Sequence[float]
    size: int = 0

    @property
    def median(self) -> float:
        """Return the middle value."""
        return statistics.median(self.values)

    @property
    def p95(self) -> float:
        """Return the value that 95 % do not exceed."""
        ordered = sorted(self.values)
        return ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]


@dataclass(frozen=True)
class Row:
    """One line: what was measured, ours, theirs, and the ratio ours / theirs, which the bar is for.

    Where the bar is for an amount instead, `amount` is ours.
    """

    what: str
    ours: str
    theirs: str
    ratio: float | None = None
    ratio_p95: float | None = None
    bar: float | None = None
    bar_text: str = ""
    amount: float | None = None

    @property
    def is_met(self) -> bool | None:
        """Return whether the bar was met, None when the row has none."""
        value = self.ratio if self.amount is None else self.amount
        return None if self.bar is None or value is None else value <= self.bar

    def cells(self) -> tuple[str, ...]:
        """Return the cells in the order of the header."""
        ratio = "" if self.ratio is None else _ratio(self.ratio)
        if self.ratio_p95 is not None:
            ratio += f" ({_ratio(self.ratio_p95)})"
        verdict = {None: "", True: "met", False: "**missed**"}[self.is_met]
        return (self.what, self.ours, self.theirs, ratio, self.bar_text, verdict)


def timed_row(what: str, ours: Sample, theirs: Sample, bar: float | None = None, against: str = "") -> Row:
    """Return a row of times: ours / theirs, smaller is better."""
    suffix = f" {against}" if against else ""
    return Row(
        what,
        _times(ours),
        _times(theirs) + suffix,
        ours.median / theirs.median,
        ours.p95 / theirs.p95,
        bar,
        "" if bar is None else f"≤ {bar:g}x",
    )


def markdown(rows: Sequence[Row]) -> str:
    """Return the table."""
    lines = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in rows]
    return "\n".join(lines)


def milliseconds(seconds: float) -> str:
    """Return a time as a reader wants it."""
    value = seconds * 1000
    if value < 0.1:
        return f"{value * 1000:.0f} µs"
    return f"{value:.0f} ms" if value >= 100 else f"{value:.1f} ms" if value >= 10 else f"{value:.2f} ms"


def size_text(count: int) -> str:
    """Return a number of bytes as a reader wants it."""
    if count >= 1_000_000:
        return f"{count / 1_000_000:.2f} MB"
    return f"{count / 1000:.1f} kB" if count >= 1000 else f"{count} B"


def _ratio(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def _times(sample: Sample) -> str:
    text = f"{milliseconds(sample.median)} (p95 {milliseconds(sample.p95)})"
    return f"{text}, {size_text(sample.size)}" if sample.size else text
