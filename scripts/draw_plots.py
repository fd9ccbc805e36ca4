"""Pure: draws bar charts as SVG from the JSON that benchmarks write; the same figures always give the same bytes."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

_WIDTH, _LABEL, _VALUE, _LINE = 860, 340, 120, 22
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}.a{fill:#3b6ea8}.b{fill:#c2813f}.c{fill:#6b8f4e}"
    ".axis{stroke:#8c959f;stroke-dasharray:3 3}.bar{stroke:#b3261e;stroke-width:2}"
    "@media(prefers-color-scheme:dark){text{fill:#d1d7e0}.a{fill:#6ea8e6}.b{fill:#e0a868}.c{fill:#9cc27a}}"
)


@dataclass(frozen=True)
class Bar:
    """One line of a chart: its label, its length, what is written behind it, its colour, and the bar that it is held to."""

    label: str
    value: float
    text: str
    kind: str = "a"
    limit: float | None = None


@dataclass(frozen=True)
class Chart:
    """A chart with what to know before reading it."""

    name: str
    title: str
    note: str
    bars: Sequence[Bar]
    is_logarithmic: bool = False
    reference: float | None = None


def svg(chart: Chart) -> str:
    """Return a chart as an SVG document, readable on light and on dark."""
    height = 34 + _LINE * len(chart.bars)
    scale = _Scale(chart)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(chart.title)}">',
        f'<style>{_STYLE}</style><text x="0" y="16" font-weight="600">{escape(chart.title)}</text>',
    ]
    if chart.reference is not None:
        x = scale.place(chart.reference)
        parts.append(f'<line class="axis" x1="{x}" x2="{x}" y1="26" y2="{height}"/>')
    for row, bar in enumerate(chart.bars):
        y = 30 + _LINE * row
        length = max(1.0, scale.place(bar.value) - _LABEL)
        parts.append(f'<text x="0" y="{y + 14}">{escape(bar.label)}</text>')
        parts.append(
            f'<rect class="{bar.kind}" x="{_LABEL}" y="{y + 3}" width="{length:.1f}" height="{_LINE - 6}" rx="2"/>'
        )
        text_at = _LABEL + length + 6
        if bar.limit is not None:
            x = scale.place(bar.limit)
            text_at = x + 6 if 0 <= x - text_at + 6 < 45 else text_at
            parts.append(f'<line class="bar" x1="{x}" x2="{x}" y1="{y + 1}" y2="{y + _LINE - 1}"/>')
        parts.append(f'<text x="{text_at:.1f}" y="{y + 14}">{escape(bar.text)}</text>')
    return "\n".join([*parts, "</svg>", ""])


class _Scale:
    """Where a value stands, from the left edge of the bars to the room that is kept for the text behind them."""

    def __init__(self, chart: Chart) -> None:
        values = [bar.value for bar in chart.bars] + [bar.limit for bar in chart.bars if bar.limit is not None]
        self._is_logarithmic = chart.is_logarithmic
        self._low = min(values) / 2 if chart.is_logarithmic else 0.0
        self._high = max(values)

    def place(self, value: float) -> float:
        """Return the x of a value."""
        room = _WIDTH - _LABEL - _VALUE
        if not self._is_logarithmic:
            return round(_LABEL + room * value / self._high, 1)
        share = math.log(value / self._low) / math.log(self._high / self._low)
        return round(_LABEL + room * share, 1)


def folder_chart(facts: dict[str, Any]) -> Chart:
    """Return the ratios of the folder tools to the others; rows without a ratio are left out."""
    rows = [row for row in facts["rows"] if row["ratio"] and "floor" not in row["what"]]
    bars = [
        Bar(_short(row), row["ratio"], f"{row['ratio']:.3g}", "a" if row["ratio"] <= 1 else "b", row["bar"])
        for row in rows
    ]
    note = (
        "Ours divided by theirs, on a logarithmic scale: left of the dashed line Holdfast is faster, or smaller. "
        f"The red mark is the bar that is asked for. {facts['machine']}."
    )
    return Chart("folders", "Folder tools: time beside the reference server and others", note, bars, True, 1.0)


def quality_chart(facts: dict[str, Any]) -> Chart:
    """Return how well each way of searching ranks, for each public set."""
    kinds = {"words": "b", "meaning": "c", "hybrid": "a"}
    bars = [
        Bar(f"{row['set']}, {row['how']}", row["ndcg"], f"{row['ndcg']:.3f}", kinds[row["how"]], row["bar"])
        for row in facts["rows"]
    ]
    note = (
        "Mean nDCG@10, larger is better: words alone, meaning alone, and both (hybrid). The red mark is the bar that is "
        "asked for. It does not depend on the machine."
    )
    return Chart("search-quality", "Search in the project store: quality of ranking", note, bars)


def freshness_chart(facts: dict[str, Any]) -> Chart:
    """Return how long after a write its words are found."""
    bars = [
        Bar(f"{row['database']}, {row['model']}, {share}", row[key], f"{row[key]:.0f} ms", kind)
        for row in facts["rows"]
        for share, key, kind in (("half", "words_p50_ms", "a"), ("95 of 100", "words_p95_ms", "b"))
    ]
    note = "From the stamp of a write to the commit of its words, for half of the writes, and for 95 of 100. "
    note += f"{facts['machine']}."
    return Chart("freshness", "How soon the words of a write are found", note, bars)


def _short(row: dict[str, Any]) -> str:
    """Return a label that fits: what was measured, and beside whom if it is not the reference server."""
    against = re.search(r"(bare ripgrep|fast-filesystem-mcp|mcp-workspace)", row["theirs"])
    label = row["what"].replace("grep_content, a ", "grep, ").replace("search_files **/*.py", "search_files")
    return f"{label} / {against[1]}" if against else label
