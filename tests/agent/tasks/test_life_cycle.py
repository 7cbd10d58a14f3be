"""States and metrics that a task reports, for each kind of failure."""

from dataclasses import dataclass, field
from typing import cast

from pyconnect_agent.channel import Message
from pyconnect_agent.channel.reports import StateReported, StatsReported
from pyconnect_agent.core.ids import State
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.life_cycle import TaskLifeCycle
from tests.support.cases import cases


@dataclass
class RecordingControl:
    """Keeps the sent messages; the task's work raises `statistics_error`."""

    statistics_error: Exception | None = None
    stopping: bool = False
    should_pause: bool = False
    sent: list[Message] = field(default_factory=list)

    def send(self, message: Message) -> None:
        self.sent.append(message)

    def report_statistics(self) -> None:
        if self.statistics_error is not None:
            raise self.statistics_error
        self.send(StatsReported(request_id=0))


class Work:
    """Fails in `execute`."""

    def __init__(self, error: BaseException, version: object = "1") -> None:
        self._error = error
        self._version = version

    def version(self) -> object:
        return self._version

    def start(self) -> None: ...

    def execute(self) -> None:
        raise self._error

    def close(self) -> None: ...


def lived(control: RecordingControl, work: Work) -> tuple[StateReported, list[Message]]:
    """Return the report of the failure, and the messages after it."""
    TaskLifeCycle(cast("Control", control)).run(work)
    states = [each for each in control.sent if isinstance(each, StateReported)]
    assert states[-1].state is State.FAILED
    return states[-1], control.sent[control.sent.index(states[-1]) + 1 :]


def test_a_failed_task_reports_its_state_before_its_last_metrics() -> None:
    """The state is sent before the metrics, which depend on parts that may be broken."""
    _, [figures] = lived(RecordingControl(), Work(ValueError("no good")))
    assert isinstance(figures, StatsReported)


@cases("error", RuntimeError("no consumer"), AttributeError("position"))
def test_metrics_that_fail_do_not_hide_why_a_task_failed(error: Exception) -> None:
    """The trace arrives, and the failure of the metrics is only logged."""
    failed, after = lived(RecordingControl(error), Work(ValueError("no good")))
    assert (failed.trace or "").startswith("ValueError: no good")
    assert after == []


def test_a_task_whose_version_is_not_a_text_is_failed_with_that_reason() -> None:
    """The FAILED status has no version, so that it can be sent."""
    failed, _ = lived(RecordingControl(), Work(ValueError("unreached"), version=(1, 2)))
    assert failed.version is None
    assert "version() of the task is of type tuple" in (failed.trace or "")


def test_an_error_that_cannot_be_shown_is_reported_all_the_same() -> None:
    """A task fails with a substitute text when the `str` of its exception raises."""

    class UnshownError(Exception):
        def __str__(self) -> str:
            raise KeyError("text")

    failed, _ = lived(RecordingControl(), Work(UnshownError()))
    assert "UnshownError.__str__ raised KeyError" in (failed.trace or "")
