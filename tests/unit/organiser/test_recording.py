"""What an observer is told of the making of a plan."""

import pytest

from holdfast.errors import Cancelled
from holdfast.organiser.model import Measures, ModelCall, PlanRecord
from holdfast.organiser.planning.build_plan import record_work


class Listener:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[PlanRecord] = []

    def record(self, record: PlanRecord) -> None:
        self.told.append(record)


def test_an_observer_is_told_once_the_work_has_ended() -> None:
    listener, call = Listener(), ModelCall("m", 3, 1, 2)
    with record_work(listener, "p", "create") as recording:
        recording.calls.append(call)
        recording.measures = Measures(files=4)
        assert listener.told == []
    (record,) = listener.told
    assert (record.plan_id, record.event, record.calls, record.fault) == ("p", "create", (call,), "")
    assert record.measures == Measures(files=4)
    assert record.started_ns <= record.ended_ns


@pytest.mark.parametrize(("error", "fault"), [(Cancelled("stop"), "CANCELLED"), (KeyError("/secret/name"), "INTERNAL")])
def test_work_that_failed_is_told_by_its_code_alone(error: Exception, fault: str) -> None:
    listener = Listener()
    with pytest.raises(type(error)), record_work(listener, "p", "create"):
        raise error
    assert listener.told[0].fault == fault
    assert "secret" not in repr(listener.told[0])


def test_work_that_nobody_observes_goes_on() -> None:
    with record_work(None, "p", "create") as recording:
        assert recording.calls == []
