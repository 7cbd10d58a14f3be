"""The process of a connector instance: its host, the checks of its config, its task configs.

Kafka: WorkerConnector, WorkerConfigTransformer.scheduleReload, and the errors that
`Worker.startConnector` finds by constructing `SinkConnectorConfig` and `SourceConnectorConfig`.

The process's main thread makes all calls into the connector, in the order of the worker's requests;
a newer target state replaces one that the thread has not taken up yet. When values of config
providers expire, the process asks its worker to restart the connector; the restart reads the values
again.
"""

import contextlib
import hmac
import json
import logging
import pkgutil
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum, auto
from pathlib import Path

from pyconnect_agent.channel.reports import (
    ConnectorIdle,
    RequestFailed,
    StateReported,
    TaskConfigs,
    TaskReconfigurationRequested,
)
from pyconnect_agent.channel.requests import GenerateTaskConfigsRequest
from pyconnect_agent.core.config.connector_checks import TOPICS, TOPICS_REGEX, check_sink_config
from pyconnect_agent.core.config.connector_config import ConnectorSettings
from pyconnect_agent.core.config.topic_creation import topic_creation_groups
from pyconnect_agent.core.config.variables import ResolvedConfig, restore_references
from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_agent.core.ids import State, TargetState
from pyconnect_agent.process import long_lived
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.plugins import plain_task_configs, plain_version
from pyconnect_agent.tasks.trace import error_text, format_trace, is_permanent, shortened
from pyconnect_agent.tasks.worker_view import WorkerView
from pyconnect_api import (
    ConfigException,
    ConnectException,
    Connector,
    OffsetStorageReader,
    SinkConnector,
    SinkConnectorContext,
    SinkTask,
    SourceConnector,
    SourceConnectorContext,
    SourceTask,
)

LOG = logging.getLogger(__name__)

_THREADS = Path("/proc/self/task")


def present_work() -> frozenset[str]:
    """Return this process's threads, also those of native libraries, and its child processes.

    On systems without /proc only Python's threads are known.
    """
    if not _THREADS.exists():
        return frozenset(str(thread.native_id) for thread in threading.enumerate())
    found = set()
    for thread in _THREADS.iterdir():
        found.add(thread.name)
        try:
            found.update((thread / "children").read_text().split())
        except OSError:
            continue  # the thread has just ended
    return frozenset(found)


TaskConfigGenerator = Callable[[Connector, GenerateTaskConfigsRequest], TaskConfigs]
"""Asks a running connector for its task configs. Raises ConnectException, `TooManyTasksError`."""

CheckConfig = Callable[[Connector, Mapping[str, str]], None]
"""Checks a config before the connector is called; an error makes the connector FAILED."""


QUIET_S = 5.0
"""Seconds without a request before a connector is checked for idleness, and between two checks."""


class TooManyTasksError(ConnectException):
    """The connector made more task configs than `tasks.max`, and the worker enforces the limit."""

    permanent = True


class _Phase(Enum):
    INIT = auto()
    STARTED = auto()
    PAUSED = auto()
    STOPPED = auto()
    ASLEEP = auto()
    """PAUSED or RUNNING for the worker, stopped for the plugin; the process may end."""
    FAILED = auto()


class _ContextCalls:
    """The calls that both kinds of context have; any thread of the connector may make them."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._failure_lock = threading.Lock()
        self.failure: Exception | None = None
        self.closed = False

    def request_task_reconfiguration(self) -> None:
        self._check_open("request task reconfiguration")
        self._control.send(TaskReconfigurationRequested())

    def raise_error(self, error: Exception) -> None:
        self._check_open("fail the connector")
        with self._failure_lock:
            if self.failure is None:
                self.failure = error
        self._control.changed.set()

    def _check_open(self, what: str) -> None:
        if self.closed:
            raise ConnectException(f"The connector has been shut down; it can no longer {what}.")


class _SourceContext(_ContextCalls, SourceConnectorContext):
    def __init__(self, control: Control, reader: OffsetStorageReader) -> None:
        super().__init__(control)
        self._reader = reader

    @property
    def offset_storage_reader(self) -> OffsetStorageReader:
        return self._reader


class _SinkContext(_ContextCalls, SinkConnectorContext):
    pass


class ConnectorHost:
    """A state machine over one connector; `config` is resolved, `mask` hides secrets in traces.

    `is_idle` returns whether the connector does no work of its own; None: its process always stays.
    """

    def __init__(
        self,
        *,
        connector: Connector,
        config: Mapping[str, str],
        control: Control,
        reader: OffsetStorageReader,
        check_config: CheckConfig,
        generate: TaskConfigGenerator,
        mask: Callable[[str], str],
        is_idle: Callable[[], bool] | None = None,
    ) -> None:
        self._connector = connector
        self._config = config
        self._control = control
        self._check_config = check_config
        self._generate = generate
        self._mask = mask
        self._is_idle = is_idle
        self._look_s = 0.0
        self._has_made_configs = False
        self._phase = _Phase.INIT
        self._version: str | None = None
        self._done: TargetState | None = None
        self._context: _SourceContext | _SinkContext = (
            _SourceContext(control, reader)
            if isinstance(connector, SourceConnector)
            else _SinkContext(control)
        )

    def run(self) -> None:
        """Return when the worker has asked for a stop and the last state is reported."""
        try:
            self._check_config(self._connector, self._config)
            self._version = plain_version(self._connector.version(), "connector")
            self._connector.initialize(self._context)
        except BaseException as exc:  # noqa: BLE001  SystemExit of a plugin too: this process is its own
            self._failed(exc)
        control = self._control
        while not control.stopping:
            control.changed.clear()
            if self._context.failure is not None:
                self._failed(self._context.failure)
            target_state = control.target_state
            if target_state is not self._done:
                self._done = target_state
                match target_state:
                    case TargetState.STARTED:
                        self._start()
                    case TargetState.PAUSED:
                        self._suspend(_Phase.PAUSED, State.PAUSED)
                    case TargetState.STOPPED:
                        self._suspend(_Phase.STOPPED, State.STOPPED)
            while not control.stopping and (request := control.next_task_config_request()):
                self._answer(request)
            if not control.stopping:
                self._rest()
        try:
            if self._phase is _Phase.STARTED:
                self._connector.stop()
        except BaseException as exc:  # noqa: BLE001  plugin code may raise anything
            self._phase = _Phase.STOPPED
            self._failed(exc)
        else:
            self._report(State.UNASSIGNED)
        finally:
            self._context.closed = True

    def _rest(self) -> None:
        """Wait for a message; report a connector that needs no process until the next message."""
        rests = self._phase is _Phase.PAUSED or (
            self._phase is _Phase.STARTED and self._has_made_configs
        )
        if self._is_idle is None or not rests:
            self._control.wait()
            return
        self._control.wait(max(self._look_s - time.monotonic(), 0.0))
        if time.monotonic() >= self._look_s and not self._control.changed.is_set():
            self._look_s = time.monotonic() + QUIET_S
            if self._is_idle():
                self._suspend(_Phase.ASLEEP, None)

    def _start(self) -> None:
        if self._phase in (_Phase.STARTED, _Phase.FAILED):
            return
        try:
            self._connector.start(self._config)
        except BaseException as exc:  # noqa: BLE001  plugin code may raise anything
            self._failed(exc)
            return
        self._phase = _Phase.STARTED
        self._report(State.RUNNING)

    def _suspend(self, phase: _Phase, state: State | None) -> None:
        """Stop the plugin, and report `state`; with None report that the process may end."""
        if self._phase is phase:
            return
        if self._phase is _Phase.FAILED and phase is not _Phase.STOPPED:
            LOG.error("a failed connector cannot be paused")
            return
        try:
            if self._phase is _Phase.STARTED:
                self._connector.stop()
        except BaseException as exc:
            if phase is _Phase.PAUSED:
                self._failed(exc)
                return
            LOG.error("connector failed to stop; it counts as stopped", exc_info=exc)
        self._phase = phase
        if state is None:
            self._control.send(ConnectorIdle())
        else:
            self._report(state)

    def _answer(self, request: GenerateTaskConfigsRequest) -> None:
        if self._phase is _Phase.ASLEEP:
            self._start()
        if self._phase is not _Phase.STARTED:
            self._refuse(
                request, ConnectException("The connector is not running; it has no task configs.")
            )
            return
        try:
            self._control.send(self._generate(self._connector, request))
            self._has_made_configs = True
        except TooManyTasksError as exc:
            self._failed(exc)
            self._refuse(request, exc)
        except BaseException as exc:
            LOG.error("connector failed to make task configs", exc_info=exc)
            self._refuse(request, exc)
        self._look_s = time.monotonic() + QUIET_S

    def _refuse(self, request: GenerateTaskConfigsRequest, error: BaseException) -> None:
        self._control.send(
            RequestFailed(
                request_id=request.request_id,
                error_class=type(error).__name__,
                message=self._mask(error_text(error)) or type(error).__name__,
                retriable=not isinstance(error, TooManyTasksError),
            )
        )

    def _failed(self, error: BaseException) -> None:
        if self._phase is _Phase.FAILED:
            return
        LOG.error("connector failed", exc_info=error)
        self._phase = _Phase.FAILED
        trace = shortened(self._mask(format_trace(error)))
        self._report(State.FAILED, trace, permanent=is_permanent(error))

    def _report(self, state: State, trace: str | None = None, *, permanent: bool = False) -> None:
        self._look_s = time.monotonic() + QUIET_S
        self._control.send(
            StateReported(state=state, trace=trace, version=self._version, permanent=permanent)
        )


def watch_expiry(resolution: ResolvedConfig, expired: Callable[[], object]) -> bool:
    """Call `expired` once for each path whose values expire, on a timer thread for each.

    Returns False if no values expire, or with `config.action.reload=none`.
    """
    if not ConnectorSettings.parse(resolution.values).restart_on_reload:
        return False

    def expire() -> None:
        # Without a worker process the request has no receiver, and this process ends soon.
        with contextlib.suppress(OSError):
            expired()

    for ttl_ms in resolution.ttls_ms.values():
        LOG.info("connector restarts when its config expires", extra={"ttl_ms": ttl_ms})
        long_lived.TimerThread("config-expiry", ttl_ms / 1000, expire).start()
    return bool(resolution.ttls_ms)


def check_connector_config(
    worker: WorkerConfig,
    raw: Mapping[str, str | None],
    connector: Connector,
    config: Mapping[str, str],
) -> None:
    """Raise ConfigException, or ConnectException for a class that is not a connector.

    `config` is `raw` resolved, without null values: validation allows null for the connector's own
    keys, a start does not.
    """
    if isinstance(connector, SinkConnector):
        check_sink_config(config, worker)
    elif isinstance(connector, SourceConnector):
        if worker.topic_creation_enable:
            topic_creation_groups(config)
    else:
        raise ConnectException(
            "Connector implementations must be a subclass of either SourceConnector or "
            "SinkConnector"
        )
    for name, text in raw.items():
        if text is None:
            raise ConfigException(
                f"Non-string value found in original settings for key {name}: null"
            )


def task_class_of(connector: Connector) -> type[SourceTask | SinkTask]:
    """Return the class of a connector's tasks.

    Raises ConnectException when it is not a task class.
    """
    found: object = connector.task_class()
    if isinstance(found, type) and issubclass(found, SourceTask | SinkTask):
        return found
    raise ConnectException(
        "Tasks must be a subclass of either SourceTask or SinkTask, but "
        f"{type(connector).__qualname__}.task_class() returned {found!r}"
    )


def task_class_in(
    task_config: Mapping[str, str], connector: Connector
) -> type[SourceTask | SinkTask]:
    """Return the task class that the running connector has named in `task_config`.

    The class may depend on the connector's config. When the name is not that of a class here (a
    Java worker has written it, or the class is within a function), `connector`, which is not
    started, is asked for its class.
    """
    with suppress(ImportError, AttributeError, ValueError):
        found = pkgutil.resolve_name(task_config.get(TASK_CLASS, ""))
        if isinstance(found, type) and issubclass(found, SourceTask | SinkTask):
            return found
    return task_class_of(connector)


TASK_CLASS = "task.class"
TASKS_MAX_ENFORCE = "tasks.max.enforce"


def generate_task_configs(
    connector: Connector, request: GenerateTaskConfigsRequest, worker: WorkerView
) -> TaskConfigs:
    """Ask the connector for task configs, add the common keys, and put references back.

    Raises TooManyTasksError, ConnectException, and exceptions of the connector.
    """
    resolved = worker.resolve(request.config).values
    settings = ConnectorSettings.parse(resolved)
    found: object = connector.task_configs(settings.tasks_max)
    made = plain_task_configs(found, type(connector).__qualname__)
    check_task_count(settings, len(made))
    task_class = task_class_of(connector)
    # A built-in task is named as the Java class it stands for, which Java workers can start.
    own_name = f"{task_class.__module__}.{task_class.__qualname__}"
    added = {TASK_CLASS: str(getattr(task_class, "java_name", own_name))}
    added |= {key: resolved[key] for key in (TOPICS, TOPICS_REGEX) if key in resolved}
    applied = request.applied_config
    text = json.dumps(sorted(resolved.items())).encode()
    return TaskConfigs(
        request_id=request.request_id,
        configs=tuple(restore_references(request.config, {**config, **added}) for config in made),
        connector_config_changed=applied is None or worker.resolve(applied).values != resolved,
        values_digest=hmac.digest(request.digest_key, text, "sha256"),
    )


def check_task_count(settings: ConnectorSettings, count: int) -> None:
    """Raise TooManyTasksError for more tasks than `tasks.max` (Kafka: Worker.checkTasksMax)."""
    name, tasks_max = settings.name, settings.tasks_max
    if count <= tasks_max:
        return
    if settings.tasks_max_enforce:
        raise TooManyTasksError(
            f"The connector {name} has generated {count} tasks, which is greater than {tasks_max}, "
            "the maximum number of tasks it is configured to create. This behaviour should be "
            "considered a bug and is disallowed. If necessary, it can be permitted by "
            f"reconfiguring the connector with '{TASKS_MAX_ENFORCE}' set to false; however, this "
            "option will be removed in a future release of Kafka Connect."
        )
    LOG.warning(
        "connector made more tasks than it is configured to; tasks.max.enforce=false allows it",
        extra={"connector": name, "tasks": count, "tasks_max": tasks_max},
    )
