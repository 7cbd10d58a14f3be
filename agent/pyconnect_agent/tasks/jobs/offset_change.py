"""Change the offsets of a stopped connector, in a process of its own (KIP-875).

Layer: tasks. Kafka: `Worker.modifyConnectorOffsets`. The connector's own `alter_offsets` runs here,
on an instance that was never started. Nothing is written before the worker has confirmed that the
connector is still stopped. The worker process kills this process when its time is over.
"""

from __future__ import annotations

import logging
from typing import Protocol, cast

from pyconnect_agent.channel import ChangeOffsetsJob, Message, OffsetChangeReached, OffsetsChanged
from pyconnect_agent.core.errors import (
    AlreadyExistsError,
    InternalError,
    NotFoundError,
    RequestError,
)
from pyconnect_agent.core.offsets.changes import ChangeStage, failed_text, unsupported_text
from pyconnect_agent.kafka.deadline import Deadline
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.in_java.connector import java_connector
from pyconnect_agent.tasks.in_java.process import java_class_of
from pyconnect_agent.tasks.jobs.plugin_questions import answer
from pyconnect_agent.tasks.jobs.source_offset_change import SourceOffsetChange
from pyconnect_agent.tasks.setup.worker_view import WorkerView
from pyconnect_api import (
    AlreadyExistsException,
    ConnectException,
    NotFoundException,
    SinkConnector,
    SourceConnector,
)

LOG = logging.getLogger(__name__)


class OffsetChangeSteps(Protocol):
    """The steps of a change; each may raise RequestError, ConnectException or AgentError."""

    def collect(self) -> None:
        """Find out the present offsets, and faults of the requested ones."""
        ...

    def ask_connector(self) -> bool:
        """Call `alter_offsets`; True when nothing is left to do outside of Kafka Connect."""
        ...

    def write(self) -> None:
        """Write, and read back."""
        ...


def change_offsets(job: ChangeOffsetsJob, control: Control) -> Message:
    """Never raises: a failure is an answer."""
    return answer(job.worker, lambda worker: _changed(job, control, worker))


def _changed(job: ChangeOffsetsJob, control: Control, worker: WorkerView) -> Message:
    resolved = worker.resolve(job.config)
    java = java_class_of(worker, resolved.values)
    connector = (
        worker.connector(resolved.values)
        if java is None
        else java_connector(java, worker, control, resolved.values)
    )
    deadline = Deadline(job.timeout_ms)
    change: OffsetChangeSteps
    if isinstance(connector, SinkConnector):
        # It needs a second Kafka client, of which no other child has a use.
        from pyconnect_agent.tasks.jobs.sink_offset_change import SinkOffsetChange

        kind = "sink"
        change = SinkOffsetChange(job, connector, worker.config, resolved.values, deadline=deadline)
    else:
        kind = "source"
        source = cast("SourceConnector", connector)
        change = SourceOffsetChange(
            job, source, worker.config, resolved.values, deadline=deadline, control=control
        )
    try:
        _run(change, kind, control, job.connector, deadline)
    except RequestError:
        raise
    # Whatever it is, SystemExit of a plugin too, it has a text of Kafka Connect's.
    except BaseException as exc:
        LOG.error("offsets could not be modified", exc_info=exc)
        raise _request_error(exc, job.connector, kind, worker.mask(str(exc))) from exc
    return OffsetsChanged()


def _run(
    change: OffsetChangeSteps, kind: str, control: Control, connector: str, deadline: Deadline
) -> None:
    control.send(OffsetChangeReached(kind=kind, stage=ChangeStage.READING))
    change.collect()
    control.send(OffsetChangeReached(kind=kind, stage=ChangeStage.CALLING))
    try:
        # A method without a return statement has not said that it has checked the offsets.
        complete = bool(change.ask_connector())
    except NotImplementedError as exc:
        raise InternalError(unsupported_text(connector)) from exc
    control.send(OffsetChangeReached(kind=kind, stage=ChangeStage.WRITING))
    control.confirm_offset_change(deadline.remaining_ms(), complete=complete)
    change.write()


def _request_error(exc: BaseException, connector: str, kind: str, text: str) -> RequestError:
    """Connect's own errors keep their texts; any other error gets Kafka Connect's text."""
    match exc:
        case NotFoundException():
            return NotFoundError(text)
        case AlreadyExistsException():
            return AlreadyExistsError(text)
        case ConnectException():
            return InternalError(text)
        case _:
            return InternalError(failed_text(connector, kind))
