"""What the server measured, as an entry for the person: the figures that a page draws, not all that can be scraped."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from holdfast.app import App
from holdfast.auth.context import CallerKind
from holdfast.call import Call
from holdfast.text.display import quantity
from holdfast.tools.answer import Answer
from holdfast.tools.registry import Effect, Group, NoArguments, tool

_LABELS_OF = {
    "holdfast_calls_total": ("status",),
    "holdfast_calls_in_progress": (),
    "holdfast_calls_waiting": (),
    "holdfast_call_duration_seconds_bucket": ("le",),
    "holdfast_call_log_dropped_total": (),
    "mcp_files_index_queue_depth": (),
    "mcp_files_index_visibility_lag_ms_bucket": ("le",),
    "mcp_files_search_latency_ms_bucket": ("le",),
    "holdfast_index_oldest_job_seconds": ("stage",),
    "holdfast_index_slo_seconds": (),
    "holdfast_database_up": (),
    "holdfast_reviews_open": ("state",),
    "holdfast_organiser_files_read_total": (),
    "holdfast_organiser_scans_running": (),
    "holdfast_organiser_verdicts_total": (),
    "holdfast_history_bytes": (),
    "holdfast_history_limit_bytes": (),
    "holdfast_connections": ("door",),
    "holdfast_disk_free_bytes": (),
    "process_resident_memory_bytes": (),
    "process_start_time_seconds": (),
}
"""The figures, and the labels that stay of each; values that differ in others only are added up."""


class ServerFigure(BaseModel):
    """One value of a figure."""

    labels: dict[str, str]
    value: float


class ServerFiguresAnswer(BaseModel):
    """The figures of this moment."""

    is_measured: bool = Field(description="false when metrics are switched off in the settings")
    figures: dict[str, list[ServerFigure]] = Field(
        description="by name, as at /metrics; histograms by cumulative buckets"
    )


@tool(
    "server_figures",
    group=Group.CORE,
    effect=Effect.READ,
    title="Figures of the server",
    output=ServerFiguresAnswer,
    audience=CallerKind.PERSON,
    is_recorded=False,
)
def server_figures(app: App, _call: Call, _args: NoArguments) -> Answer:
    """Say what the server measures: calls and their latency, the index and its queue, memory and disk."""
    snapshot = app.observer.metrics.snapshot()
    figures = {
        name: _add_up(snapshot[name], label_names) for name, label_names in _LABELS_OF.items() if name in snapshot
    }
    data = ServerFiguresAnswer(is_measured=bool(snapshot), figures=figures)
    return Answer.of(f"{quantity(len(figures), 'figure')}.", data=data)


def _add_up(entries: Sequence[Mapping[str, Any]], label_names: tuple[str, ...]) -> list[ServerFigure]:
    """Return the values added up by the labels that stay."""
    totals: dict[tuple[str, ...], float] = {}
    for entry in entries:
        key = tuple(str(entry["labels"].get(label, "")) for label in label_names)
        totals[key] = totals.get(key, 0.0) + float(entry["value"])
    return [ServerFigure(labels=dict(zip(label_names, key, strict=True)), value=total) for key, total in totals.items()]
