"""The life of a task's process from start to end: states, a pause before the start, failures.

Kafka: WorkerTask. `TaskWork` has the parts that differ between sources and sinks.
"""

import logging
from collections.abc import Callable
from typing import Protocol

from pyconnect_agent.channel.reports import StateReported
from pyconnect_agent.core.ids import State
from pyconnect_agent.core.metric_values import Sampling
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.plugins import plain_version
from pyconnect_agent.tasks.task_metrics import TaskMetrics
from pyconnect_agent.tasks.trace import format_trace, is_permanent, shortened

LOG = logging.getLogger(__name__)


class TaskWork(Protocol):
    """One source or sink task; its methods are called in this order, each at most once."""

    def version(self) -> object:
        """Return the version as the plugin reports it; the plugin is already constructed."""
        ...

    def start(self) -> None:
        """Make the clients and start the plugin. Any exception makes the task FAILED."""
        ...

    def execute(self) -> None:
        """Run until the worker asks for a stop. Any exception makes the task FAILED."""
        ...

    def close(self) -> None:
        """Stop the plugin and release everything; called also when `start` raised."""
        ...


class TaskLifeCycle:
    """Runs a `TaskWork` and reports its states to the worker."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self.metrics = TaskMetrics(Sampling())
        """The metrics; replaced before the task is made, once the worker's sampling windows are
        known.
        """
        self._version: str | None = None
        self.mask: Callable[[str], str] = str
        """Hides values of config providers in a trace."""

    def report(self, state: State, trace: str | None = None, *, permanent: bool = False) -> None:
        self.metrics.state_changed(state)
        self._control.send(
            StateReported(state=state, trace=trace, version=self._version, permanent=permanent)
        )

    def show_retries(self, trace: str | None) -> None:
        """Report RUNNING with the trace of a retried call, None when the retries are over."""
        self.report(State.RUNNING, None if trace is None else shortened(self.mask(trace)))

    def fail(self, error: BaseException) -> None:
        """Report an error: FAILED, or UNASSIGNED once the worker has asked for a stop."""
        if self._control.stopping:
            LOG.warning("task failed while it was being stopped", exc_info=error)
            self.report(State.UNASSIGNED)
        else:
            LOG.error("task failed", exc_info=error)
            trace = shortened(self.mask(format_trace(error)))
            self.report(State.FAILED, trace, permanent=is_permanent(error))
            try:
                self._control.report_statistics()
            except Exception:
                LOG.exception("the last metrics of the failed task are missing")

    def run(self, work: TaskWork) -> None:
        """Run the task; return when its last state is reported."""
        failure: BaseException | None = None
        started = False
        try:
            self._version = plain_version(work.version(), "task")
            if self._await_start():
                started = True
                work.start()
                self.report(State.RUNNING)
                work.execute()
        except BaseException as exc:  # noqa: BLE001  SystemExit of a plugin too: this process is its own
            failure = exc
        try:
            if started:
                work.close()
        except BaseException as exc:
            if failure is None:
                failure = exc
            else:
                LOG.error("task failed again while it was being closed", exc_info=exc)
        if failure is None:
            self.report(State.UNASSIGNED)
        else:
            self.fail(failure)

    def _await_start(self) -> bool:
        """Wait while the target state is PAUSED; return False when a stop comes first."""
        control = self._control
        if control.should_pause and not control.stopping:
            self.report(State.PAUSED)
            while control.should_pause and not control.stopping:
                control.changed.clear()
                if control.should_pause and not control.stopping:
                    control.wait()
        return not control.stopping
