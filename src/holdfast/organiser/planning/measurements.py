"""What happens while a plan is made or revised, as an observer will be told: times, counts, measures, requests to models."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from holdfast.errors import HoldfastError
from holdfast.organiser.model import Measures, ModelCall, PlanRecord
from holdfast.organiser.ports import Observer


@dataclass(slots=True)
class Recording:
    """Filled while the work goes on."""

    calls: list[ModelCall] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    measures: Measures | None = None


@contextmanager
def recorded(observer: Observer | None, plan_id: str, event: str) -> Iterator[Recording]:
    """Give a recording of some work on a plan, and tell the observer when the work has ended, however it did."""
    recording, started_ns, fault = Recording(), time.time_ns(), "INTERNAL"
    try:
        yield recording
        fault = ""
    except HoldfastError as error:
        fault = error.code
        raise
    finally:
        if observer is not None:
            observer.record(
                PlanRecord(
                    plan_id,
                    event,
                    started_ns,
                    time.time_ns(),
                    recording.counts,
                    tuple(recording.calls),
                    recording.measures,
                    fault,
                )
            )
