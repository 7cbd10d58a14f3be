"""A child process from its first instruction to its last.

The fork server's child calls `run` with its end of the pipe; the first message is the process's
job. The process ends by `os._exit`: neither plugin threads nor client libraries may delay the end
once everything is reported. An exception that is not reported otherwise is logged and becomes the
process's last words, which the worker process puts into traces and answers.

Log lines are sent to the worker process one by one. A line is sent before the call that logs it
returns, so the lines before a crash arrive. Standard error gets all lines; the worker process gets
only as many as it can keep for all its children. Thread-safe, as `logging` holds the handler's
lock.
"""

import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType

from pyconnect_agent.channel import LAST_WORDS_BYTES, NUMBER, Channel, ChannelError, Message
from pyconnect_agent.channel.reports import (
    ConfigTtlExpired,
    LineLogged,
    RequestFailed,
    StateReported,
)
from pyconnect_agent.channel.requests import (
    ChangeOffsetsJob,
    DescribePluginJob,
    FenceProducersJob,
    ReadOffsetsJob,
    RunConnectorJob,
    RunTaskJob,
    ShareProcessJob,
    TryConnectorJob,
    ValidateConfigJob,
    WorkerSettings,
)
from pyconnect_agent.core.config.connector_config import ConnectorSettings
from pyconnect_agent.core.errors import InternalError
from pyconnect_agent.core.ids import State, TargetState
from pyconnect_agent.process import long_lived
from pyconnect_agent.process.logging import (
    EventFormatter,
    LogFormat,
    OfThisScope,
    RuntimeLevels,
    bind_scope,
    configure_logging,
    level_name,
    mask_logs,
    masked,
    unmask_logs,
)
from pyconnect_agent.tasks.connector import (
    ConnectorHost,
    check_connector_config,
    check_task_count,
    generate_task_configs,
    present_work,
    task_class_in,
    watch_expiry,
)
from pyconnect_agent.tasks.control import EXIT_ORPHANED, EXIT_TERMINATED, Control
from pyconnect_agent.tasks.in_java.connector import JavaConnector, java_connector
from pyconnect_agent.tasks.in_java.process import java_class_of, java_task, plugins_of_python
from pyconnect_agent.tasks.life_cycle import TaskLifeCycle, TaskWork
from pyconnect_agent.tasks.offset_change import change_offsets, read_offsets
from pyconnect_agent.tasks.plugins import TaskPlugins, connector_and_task, converters_and_stages
from pyconnect_agent.tasks.questions import describe_plugin, fence_producers, validate_config
from pyconnect_agent.tasks.source.offsets import (
    OffsetUse,
    ReadOffsets,
    WorkerOffsetReader,
    offset_stores,
)
from pyconnect_agent.tasks.task_metrics import TaskMetrics
from pyconnect_agent.tasks.trace import format_trace, is_permanent, prepare_dumps, shortened
from pyconnect_agent.tasks.trial import try_connector
from pyconnect_agent.tasks.work import SinkWork, SourceWork
from pyconnect_agent.tasks.worker_view import KeptQuestions, TaskSetup, WorkerView
from pyconnect_api import Connector, SinkTask, SourceConnector, SourceTask
from pyconnect_api.coroutines import run_coroutines

LINES_A_SECOND = 200
BURST = 1_000
LINE_CHARACTERS = 16_384
_CUT = " [...]"


class LogReports(logging.Handler):
    """A handler of the root logger that sends lines by `send`, which is the channel's."""

    def __init__(
        self, send: Callable[[Message], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self.setFormatter(EventFormatter())
        self._send = send
        self._clock = clock
        self._allowed = float(BURST)
        self._counted_s = clock()
        self._left_out = 0
        self._sending = False

    def emit(self, record: logging.LogRecord) -> None:
        """Send a line, or count it when there have been too many."""
        # Sending may log a line on this thread, which calls this method again.
        if self._sending:
            return
        now_s = self._clock()
        refilled = self._allowed + (now_s - self._counted_s) * LINES_A_SECOND
        self._allowed, self._counted_s = min(refilled, BURST), now_s
        if self._allowed < 1:
            self._left_out += 1
            return
        self._allowed -= 1
        self._sending = True
        try:
            if self._left_out:
                text = f"{self._left_out} lines are left out here; standard error has them all"
                self._left_out = 0
                self._send(_line(record, "WARN", text))
            self._send(_line(record, level_name(record.levelno), self.format(record)))
        except (OSError, ChannelError):
            pass  # the worker process is gone, and this one is about to end
        except Exception:  # noqa: BLE001  a line must not end the code that logs it
            self.handleError(record)
        finally:
            self._sending = False


def _line(record: logging.LogRecord, level: str, text: str) -> LineLogged:
    if len(text) > LINE_CHARACTERS:
        text = text[: LINE_CHARACTERS - len(_CUT)] + _CUT
    return LineLogged(
        time_ms=int(record.created * 1000), level=level, logger=record.name, text=text
    )


LOG = logging.getLogger(__name__)

COLLECTION_THRESHOLDS = (50_000, 20, 20)
"""The default of 700 new objects between two collections costs a tenth of the rate: tens of
thousands of records come and go, and they hold no cycles.
"""
EXIT_FAILED = 1
"""Exit code of a process whose last words give the reason."""


def run(connection: socket.socket, last_words: int) -> None:
    """Do the job in the first message of `connection`; does not return.

    `last_words`: the descriptor of the file that gets the reason why this process failed.
    """
    channel = Channel(connection)
    exit_code = EXIT_FAILED
    try:
        prepare_dumps()
        job = channel.receive()
        if job is not None:
            _serve(channel, job)
        exit_code = EXIT_ORPHANED if job is None else 0
    except BaseException as exc:  # noqa: BLE001  plugin code, SystemExit too: this process is its own
        if channel.is_broken:
            exit_code = EXIT_ORPHANED
        else:
            leave(exc, last_words)
    finally:
        with suppress(OSError, ValueError):  # the streams may be closed
            sys.stdout.flush()
            sys.stderr.flush()
        logging.shutdown()
        os._exit(exit_code)


def leave(error: BaseException, last_words: int) -> None:
    """Report the reason why this process ends, in the log and to the worker process."""
    text = masked(format_trace(error))
    os.write(last_words, text.encode(errors="backslashreplace"))
    LOG.critical("process failed", exc_info=error)


def _serve(channel: Channel, job: Message) -> None:
    match job:
        case RunTaskJob():
            levels = _prepare_logging(
                job.worker, connector=job.task_id.connector, task=str(job.task_id)
            )
            _run_task(channel, job, levels, LogReports(channel.send))
        case ShareProcessJob():
            # Each task runs in a thread of its own; SIGTERM stays ignored.
            levels = _prepare_logging(job.worker)
            long_lived.let_threads_inherit_context()
            while (told := channel.receive_task()) is not None:
                long_lived.Thread("task", partial(_run_in_thread, *told, levels)).start()
        case RunConnectorJob():
            levels = _prepare_logging(job.worker, connector=job.connector)
            _run_connector(channel, job, levels)
        case ValidateConfigJob():
            _prepare_logging(job.worker, scope="validation")
            # A process that the worker process keeps answers all validations of one location.
            with KeptQuestions() as kept:
                next_job: Message | None = job
                while next_job is not None:
                    if isinstance(next_job, ValidateConfigJob):
                        _answer(channel, validate_config(next_job, kept if job.keep else None))
                        if not kept.forget():
                            return
                    next_job = channel.receive()
        case ReadOffsetsJob():
            _prepare_logging(job.worker, connector=job.connector, scope="offsets")
            channel.send(read_offsets(job))
        case ChangeOffsetsJob():
            levels = _prepare_logging(job.worker, connector=job.connector, scope="offsets")
            channel.send(change_offsets(job, _control_of(channel, levels)))
        case TryConnectorJob():
            levels = _prepare_logging(job.worker, connector=job.connector, scope="trial")
            _answer(channel, try_connector(job, _control_of(channel, levels)))
        case DescribePluginJob():
            _prepare_logging(job.worker, scope="plugin")
            _answer(channel, describe_plugin(job))
        case FenceProducersJob():
            _prepare_logging(job.worker, connector=job.connector, scope="fencing")
            channel.send(fence_producers(job))
        case _:
            raise ChannelError(f"{type(job).__name__} is not a job")


def _run_in_thread(channel: Channel, fate: int, levels: RuntimeLevels) -> None:
    """Run a task in a thread of a shared process, and clean up after it."""
    exit_code, words = 0, ""
    reports = LogReports(channel.send)
    owner = ""
    try:
        job = channel.receive()
        if isinstance(job, RunTaskJob):
            owner = str(job.task_id)
            bind_scope(connector=job.task_id.connector, task=owner)
            reports.addFilter(OfThisScope())
            _run_task(channel, job, levels, reports)
    except BaseException as exc:  # plugin code, SystemExit too: it ends this task alone
        exit_code, words = EXIT_FAILED, masked(format_trace(exc))
        LOG.critical("task's thread failed", exc_info=exc)
    finally:
        logging.getLogger().removeHandler(reports)
        long_lived.forget_before_end(owner)
        unmask_logs(owner)
        # The worker process closes the pipe as soon as it has read the result of the task.
        channel.is_over = True
        told = words.encode(errors="backslashreplace")[:LAST_WORDS_BYTES]
        os.write(fate, NUMBER.pack(exit_code) + told)
        os.close(fate)
        channel.end()


def _control_of(channel: Channel, levels: RuntimeLevels) -> Control:
    """Return the control of a process that answers one question; its state has no meaning."""
    control = Control(channel, TargetState.STOPPED)
    _listen(control, levels)
    return control


def _answer(channel: Channel, answer: Message) -> None:
    """Send the result of plugin code, or name the part of it that a message cannot hold."""
    try:
        channel.send(answer)
    except ChannelError as exc:
        LOG.error("the plugin made an answer that cannot be sent", exc_info=exc)
        refusal = RequestFailed(
            request_id=0, error_class=InternalError.__name__, message=f"The plugin's {exc}"
        )
        channel.send(refusal)


def _prepare_logging(worker: WorkerSettings, **scope: str) -> RuntimeLevels:
    levels = configure_logging(levels=worker.levels, log_format=LogFormat(worker.log_format))
    bind_scope(**scope)
    return levels


def _listen(control: Control, levels: RuntimeLevels) -> None:
    """Start the control thread, which may change levels, and install the handler of SIGTERM.

    SIGTERM is ignored until the time for an orderly stop is over: service managers send it to every
    process of the worker, and the worker process then stops its children in its own order. A
    process that tasks share always ignores it.
    """

    def terminate(_number: int, _frame: FrameType | None) -> None:
        if control.stopping and time.monotonic() >= control.stop_until_s:
            os._exit(EXIT_TERMINATED)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, terminate)
    control.set_logger_level, control.logger_levels = levels.set_level, levels.levels
    control.start()


def _run_task(
    channel: Channel, job: RunTaskJob, levels: RuntimeLevels, reports: LogReports
) -> None:
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    control = Control(channel, job.target_state, lease_ms=job.lease_ms)
    logging.getLogger().addHandler(reports)
    _listen(control, levels)
    life_cycle = TaskLifeCycle(control)
    owner = str(job.task_id)
    long_lived.call_before_end(life_cycle.fail, owner)
    try:
        worker = WorkerView(job.worker.properties, job.worker.plugins)
        life_cycle.mask = worker.mask
        mask_logs(worker.mask, owner)
        setup = TaskSetup.of(job, worker)
        if job.task_count:
            check_task_count(ConnectorSettings.parse(setup.connector_config), job.task_count)
        life_cycle.metrics = TaskMetrics(setup.worker.config.sampling)
        work = _task_work(setup, control, life_cycle)
    except BaseException as exc:  # noqa: BLE001  plugin code, SystemExit too: this process is its own
        life_cycle.fail(exc)
        return
    life_cycle.run(work)


def _task_work(setup: TaskSetup, control: Control, life_cycle: TaskLifeCycle) -> TaskWork:
    plugins: TaskPlugins | None = None
    task: SourceTask | SinkTask
    java = java_class_of(setup.worker, setup.connector_config)
    keys = setup.worker.config.agent_keys.of_connector(setup.connector_config)
    keys.check_limits(is_java=java is not None)
    if java is not None:
        task, life_cycle.metrics.plugins = java_task(java, setup, control)
        assert task.segments is not None
        life_cycle.metrics.stages = task.segments.metrics
    else:
        connector = setup.worker.connector(setup.connector_config)
        made = setup.worker.instance(task_class_in(setup.task_config, connector))
        assert isinstance(made, SourceTask | SinkTask)
        run_coroutines(made)
        plugins, in_java = plugins_of_python(
            setup.worker, setup.connector_config, control, owner=f"task {setup.task_id}"
        )
        life_cycle.metrics.plugins = (
            *connector_and_task(connector, made),
            *converters_and_stages(plugins),
            *in_java,
        )
        task = made
    if isinstance(task, SourceTask):
        return SourceWork(task, setup, control, life_cycle, plugins)
    return SinkWork(task, setup, control, life_cycle, plugins)


def _run_connector(channel: Channel, job: RunConnectorJob, levels: RuntimeLevels) -> None:
    control = Control(channel, job.target_state, lease_ms=job.lease_ms)
    logging.getLogger().addHandler(LogReports(channel.send))
    _listen(control, levels)
    mask: Callable[[str], str] = str

    def report_failure(error: BaseException) -> None:
        trace = shortened(mask(format_trace(error)))
        permanent = is_permanent(error)
        control.send(StateReported(state=State.FAILED, trace=trace, permanent=permanent))

    long_lived.call_before_end(report_failure)
    try:
        worker = WorkerView(job.worker.properties, job.worker.plugins)
        mask = worker.mask
        mask_logs(mask)
        resolved = worker.resolve(job.config)
        expires = watch_expiry(resolved.resolution, partial(control.send, ConfigTtlExpired()))
        java = java_class_of(worker, resolved.values)
        if java is None:
            connector = worker.connector(resolved.values)
        else:
            connector = java_connector(java, worker, control, resolved.values)
        read: ReadOffsets = control.read_offsets
        if isinstance(connector, SourceConnector):
            offsets = offset_stores(
                worker.config,
                job.connector,
                resolved.values,
                control,
                client=job.connector,
                use=OffsetUse.CONNECTOR,
            )
            offsets.start(control.stop_requested.is_set)
            read = offsets.read
        may_sleep = job.may_sleep and not expires
        host = ConnectorHost(
            connector=connector,
            config=resolved.values,
            control=control,
            reader=WorkerOffsetReader(job.connector, read),
            check_config=partial(check_connector_config, worker.config, job.config),
            generate=lambda connector, request: generate_task_configs(connector, request, worker),
            mask=mask,
            is_idle=partial(_is_idle, connector, present_work()) if may_sleep else None,
        )
    except BaseException as exc:
        LOG.error("connector could not be made", exc_info=exc)
        report_failure(exc)
        # The connector stays FAILED until the worker stops it.
        control.stop_requested.wait()
        control.send(StateReported(state=State.UNASSIGNED))
        return
    host.run()


def _is_idle(connector: Connector, before: frozenset[str]) -> bool:
    """Return whether the connector has no threads or child processes beside those of `before`."""
    return present_work() <= before and (
        not isinstance(connector, JavaConnector) or connector.is_idle()
    )
