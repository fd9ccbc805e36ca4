"""Turns the record of a plan into figures for the metrics."""

from holdfast.observe.metrics import Metrics, ScanFigures
from holdfast.organiser.model import PlanRecord
from holdfast.organiser.ports import PlanObserver


class MeasuredPlans:
    """Implements `PlanObserver`: counts each plan, and passes its record on."""

    def __init__(self, metrics: Metrics, then: PlanObserver | None) -> None:
        self._metrics = metrics
        self._then = then

    def record(self, record: PlanRecord) -> None:
        """Take the record; never waits and never fails."""
        measures, counts = record.measures, record.counts
        moved, uncertain = counts.get("moves", 0), counts.get("uncertain", 0)
        stay = max(0, counts.get("files", 0) - moved - uncertain)
        figures = ScanFigures(
            outcome=record.fault.lower() or "ok",
            seconds=(record.ended_ns - record.started_ns) / 1e9,
            files_read=measures.files - measures.cache_hits if measures else 0,
            bytes_read=measures.bytes_read if measures else 0,
            verdicts={"move": moved, "uncertain": uncertain, "stay": stay} if counts else None,
        )
        self._metrics.scan_ended(figures)
        if self._then is not None:
            self._then.record(record)
