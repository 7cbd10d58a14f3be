"""The Spark session of one run, and how its work is watched and cancelled.

Under spark-submit the session is configured already, and only the settings that the jobs need are
set. Otherwise the session is local, or on the master or the Spark Connect server of the spec.

A local session starts and ends in a thread of its own. Signals raise KeyboardInterrupt in the main
thread, so they neither lose the JVM nor disturb its end by interrupting a call to it.

A session at a Spark Connect server is reached in bounded time, watched and cancelled over gRPC. The
server is shared: ending the session interrupts and releases only its own work. The server has its
own master, memory and Kafka source.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

from pyconnect_clients.installation import install_command
from pyconnect_reconcile.errors import InvalidQuestion, ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.files import absolute
from pyconnect_reconcile.properties import submitted
from pyconnect_reconcile.spec import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.connect.session import SparkSession as RemoteSession


REMOTE_VARIABLE = "SPARK_REMOTE"
REACH_S = 10.0
# Retries to a server that went away: 0.2 s, 0.4 s, … in all 6 s. PySpark's last for 10 minutes.
RETRIES = {"max_retries": 5, "initial_backoff": 200, "backoff_multiplier": 2.0, "max_backoff": 5000}
INTERRUPT_S = 0.5
SQL_SETTINGS = "spark.sql."


def remote_of(settings: SparkSettings) -> str | None:
    """Return the server's URL: the spec's, else the environment's unless the spec has a master."""
    return settings.remote or (None if settings.master else os.environ.get(REMOTE_VARIABLE))


def connect(url: str, app_name: str) -> SparkSession:
    """Return a new session; ReconcileError when no server answers.

    URLs may hold a token and are never shown. ImportError if packages of the client are missing.
    """
    import grpc
    import pyspark
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client import DefaultChannelBuilder

    _require_release(f"the client is pyspark {pyspark.__version__}", pyspark.__version__)
    try:
        builder = DefaultChannelBuilder(url)
        channel = builder.toChannel()
    except ValueError as exc:
        # The original error quotes the parameters, and one may be a token.
        raise InvalidQuestion(
            "the address of the Spark Connect server is not sc://HOST:PORT[/;KEY=VALUE…]"
        ) from exc
    try:
        grpc.channel_ready_future(channel).result(timeout=REACH_S)
    except grpc.FutureTimeoutError as exc:
        raise ReconcileError(
            f"no Spark Connect server answers at {builder.endpoint}",
            hint="is --remote right, and is the server up? with TLS: sc://HOST:PORT/;use_ssl=true",
        ) from exc
    finally:
        channel.close()
    os.environ.pop(REMOTE_VARIABLE, None)
    # Settings follow later: with them PySpark would send a request before the retries are limited.
    session = SparkSession.builder.remote(url).create()
    _limit_retries(session, **RETRIES)
    session.addTag(app_name.replace(",", " "))
    return session


def set_up(session: SparkSession, settings: SparkSettings) -> None:
    """Give the session the user's settings and jars; InvalidQuestion for refused ones."""
    from pyspark.errors import AnalysisException

    from pyconnect_reconcile.properties import read_properties

    _require_release(f"the server has Spark {session.version}", session.version)
    if settings.packages:
        raise InvalidQuestion(
            "a Spark Connect server does not accept packages from a session",
            hint="start the server with --packages, or give the jars with --jars",
        )
    # The settings file may serve local sessions too: its settings of JVMs are skipped.
    file = read_properties(settings.properties_file)
    given = {key: value for key, value in file.items() if key.startswith(SQL_SETTINGS)}
    for key, value in {**given, **settings.conf}.items():
        try:
            session.conf.set(key, value)
        except AnalysisException as exc:
            raise InvalidQuestion(
                f"the Spark Connect server refuses the setting {key}",
                hint="settings outside spark.sql belong to the start of the server",
            ) from exc
    if settings.jars:
        session.addArtifacts(*settings.jars)
        # Spark makes the canonical form of a cached plan when it meets another plan in the cache:
        # without one, in the next query, which may be from a session without these jars. For
        # functions of a jar (`from_avro`) that query would fail with
        # AVRO_NOT_LOADED_SQL_FUNCTIONS_UNUSABLE. This row is the other plan.
        _own_row(session).persist()


@contextmanager
def cancelled_by_signals(session: SparkSession) -> Iterator[None]:
    """Have SIGINT and SIGTERM interrupt the session's work; then raise KeyboardInterrupt.

    An exception within a call would leave its operation behind (see `release`), so the handler
    waits until the server ends the call with an error. A second signal does not wait.
    """
    wanted, over = threading.Event(), threading.Event()

    def interrupt() -> None:
        # The interrupts repeat until the session ends: one between two operations has no effect.
        while not over.is_set():
            # A server that does not answer ends the call as well.
            with suppress(Exception):
                session.interruptAll()
            over.wait(INTERRUPT_S)

    def asked(_signal: int, _frame: FrameType | None) -> None:
        if wanted.is_set():
            raise KeyboardInterrupt
        wanted.set()
        threading.Thread(target=interrupt, name="spark-interrupt", daemon=True).start()

    before = {each: signal.signal(each, asked) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except Exception as exc:
        if wanted.is_set():
            raise KeyboardInterrupt from exc
        raise
    finally:
        over.set()
        for each, handler in before.items():
            signal.signal(each, handler)
    if wanted.is_set():
        raise KeyboardInterrupt


def release(session: SparkSession) -> None:
    """Interrupt the session's work and end the session; the server itself goes on.

    Operations are released first: for those that end with their session, a server writes the
    requests to its log, with all options.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator

    _limit_retries(session, **{**RETRIES, "max_retries": 0})
    # If the server is gone, its work is gone, too.
    with suppress(PySparkException):
        session.interruptAll()
        _own_row(session).unpersist()
    if hasattr(ExecutePlanResponseReattachableIterator, "shutdown"):
        ExecutePlanResponseReattachableIterator.shutdown()
    else:  # Spark 4.2: each client knows its own requests.
        wait(session.client._release_futures, INTERRUPT_S * 20)  # noqa: SLF001
    session.stop()


def tell_progress(session: SparkSession, events: Events) -> None:
    """Report the tasks of the session's work as the server sends them."""

    def told(*, stages: Iterable[Any] | None, **_more: object) -> None:
        known = list(stages or ())
        if known:
            events.progress(
                sum(stage.num_completed_tasks for stage in known),
                sum(stage.num_tasks for stage in known),
            )

    session.registerProgressHandler(told)


def _own_row(session: SparkSession) -> DataFrame:
    """Return a row that no other session has: equal plans share one entry of the cache."""
    number = cast("RemoteSession", session).session_id
    return session.range(1).selectExpr(f"'{number}' AS session")


def _require_release(found: str, version: str) -> None:
    if version.startswith("3."):
        raise InvalidQuestion(
            f"audits through Spark Connect need Spark 4.0 or newer, but {found}",
            hint="run the audit with --master, or by spark-submit, which also work with Spark 3.5",
        )


def _limit_retries(session: SparkSession, **retries: float) -> None:
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(**retries)])


POLL_S = 0.5
END_S = 600
"""The longest wait for a JVM's end, when it may write an archive of its classes for minutes."""
# Names of options whose values Spark must not show in plans, its UI or its logs.
HIDDEN_OPTIONS = "secret|password|token|access[.]?key|url|jaas|sasl|ssl[.]key|credential"
REDACTED = f"(?i){HIDDEN_OPTIONS}"
# A Spark Connect server shows requests as text, where options are entries of a map.
REDACTED_TEXT = rf'(?i)key: "[^"]*({HIDDEN_OPTIONS})[^"]*"\s+value: "[^"\\]*+(\\.[^"\\]*+)*+"'
# Adaptive rules that trust the row count of a persisted frame. Spark may take the count before all
# partitions are stored (SPARK-57547), and then drops rows: findings would be lost.
TRUST_IN_COUNTS = (
    "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation",
    "org.apache.spark.sql.catalyst.optimizer.EliminateLimits",
    "org.apache.spark.sql.catalyst.optimizer.OptimizeOneRowPlan",
)
# Every job needs these, also in sessions of other programs.
JOB_CONF = {
    # Sums and casts of the data must not end a run; the jobs count values that do not parse.
    "spark.sql.ansi.enabled": "false",
    # Times of day are texts: releases before 4.1 have no type for them.
    "spark.sql.timeType.enabled": "false",
    # By default Spark 3.5 refuses dates before 1900 in files, and texts of times that Spark 2 read
    # differently.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.session.timeZone": "UTC",
    # An unreadable file must end the run.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Names of JSON members, Kafka fields and columns of Parquet are case-sensitive.
    "spark.sql.caseSensitive": "true",
    # These three copy the expressions of a join's key to each place that uses them: the plan of a
    # compare would take minutes. There are no partitions of tables to prune.
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.optimizer.excludedRules": ",".join(TRUST_IN_COUNTS),
    "spark.sql.redaction.options.regex": REDACTED,
    "spark.sql.redaction.string.regex": REDACTED_TEXT,
}
LOCAL_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "16",
    "spark.redaction.regex": REDACTED,
}
# The second compiler takes code that runs ten times as often as by default: an audit of 300,000
# records then needs a fifth less processor time, and a large one reaches these numbers at once.
LATE_OPTIMISATION = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000"
    " -XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
LOG_CONFIGURATION = """\
rootLogger.level = {level}
rootLogger.appenderRef.file.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""


@contextmanager
def spark_session(
    settings: SparkSettings, *, app_name: str, work_directory: Path, events: Events
) -> Iterator[SparkSession]:
    """Yield a session; it ends with its JVM when the block ends. `events` gets its progress."""
    with starting_session(
        settings, app_name=app_name, work_directory=work_directory, events=events, at_once=True
    ) as session:
        yield session()


@contextmanager
def starting_session(
    settings: SparkSettings, *, app_name: str, work_directory: Path, events: Events, at_once: bool
) -> Iterator[Callable[[], SparkSession]]:
    """Yield a function that starts a `spark_session` and returns it.

    Only the first call starts it. With `at_once` a local session starts while the caller works.
    """
    with ExitStack() as stack:
        if url := remote_of(settings):
            yield cache(lambda: stack.enter_context(_connected(url, settings, app_name, events)))
        else:
            start = stack.enter_context(_local(settings, app_name, work_directory))
            if at_once:
                start()
            yield cache(lambda: stack.enter_context(_watched(start().result(), events)))


@contextmanager
def _local(
    settings: SparkSettings, app_name: str, work_directory: Path
) -> Iterator[Callable[[], Future[SparkSession]]]:
    """Yield a function that starts one session; the session ends when the block ends."""
    over = threading.Event()
    started: list[Future[SparkSession]] = []
    with ThreadPoolExecutor(1, "spark") as thread:

        def start() -> Future[SparkSession]:
            if not started:
                # Two threads that import one package at once may see half of it.
                with suppress(ImportError):
                    import_module("pyspark.sql")
                started.append(thread.submit(_session, settings, app_name, work_directory, over))
            return started[0]

        try:
            yield start
        finally:
            over.set()
            for session in started:
                thread.submit(_end, session).result()


@contextmanager
def _connected(
    url: str, settings: SparkSettings, app_name: str, events: Events
) -> Iterator[SparkSession]:
    with _connect_errors_translated():
        session = connect(url, app_name)
    try:
        with _connect_errors_translated():
            set_up(session, settings)
            _rely_on(session)
        tell_progress(session, events)
        with cancelled_by_signals(session):
            yield session
    finally:
        release(session)


@contextmanager
def _connect_errors_translated() -> Iterator[None]:
    try:
        from pyspark.errors import PySparkException
    except ImportError as exc:
        raise ReconcileError(
            "Spark is not installed", hint=f"install it: {install_command('reconcile')}"
        ) from exc
    try:
        yield
    except ImportError as exc:
        # The client of Spark Connect needs more packages than pyspark installs.
        message = f"Spark Connect needs more packages: {_first_line(exc)}"
        raise ReconcileError(
            message, hint=f"install them: {install_command('reconcile-connect')}"
        ) from exc
    except PySparkException as exc:
        raise ReconcileError(f"Spark Connect gave no session: {_first_line(exc)}") from exc


def _session(
    settings: SparkSettings, app_name: str, work_directory: Path, over: threading.Event
) -> SparkSession:
    """Start a session; stop after the JVM's start if the caller does not need it any more."""
    try:
        from pyspark import SparkConf, SparkContext
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as exc:
        raise ReconcileError(
            "Spark is not installed", hint=f"install it: {install_command('reconcile')}"
        ) from exc
    # The spec names a master: SPARK_REMOTE must not replace it.
    os.environ.pop(REMOTE_VARIABLE, None)
    conf = {} if submitted() else _local_conf(settings, work_directory)
    builder = SparkSession.builder.appName(app_name)
    for key, value in conf.items():
        builder = builder.config(key, value)
    try:
        if conf:
            # This starts the JVM for the next session of this process, not in the main thread.
            # pyspark knows the process only once it has answered. An earlier exception, such as
            # that of a signal in the main thread, would leave a JVM that finds its connection
            # file's directory removed, and then waits forever.
            settings_of_jvm = SparkConf().setAll(list(conf.items()))
            SparkContext._ensure_initialized(conf=settings_of_jvm)  # noqa: SLF001
        if over.is_set():
            raise ReconcileError("Spark is not needed any more")
        session = builder.getOrCreate()
        _rely_on(session)
    except (PySparkException, RuntimeError, OSError) as exc:
        raise ReconcileError(f"Spark did not start: {_first_line(exc)}") from exc
    session.sparkContext.setLogLevel("ERROR")
    return session


def _rely_on(session: SparkSession) -> None:
    for key, value in JOB_CONF.items():
        session.conf.set(key, value)


def _local_conf(settings: SparkSettings, work_directory: Path) -> dict[str, str]:
    """Return the settings of the JVM and the session; the user's `conf` wins."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    log_configuration = work_directory / "log4j2.properties"
    log_configuration.write_text(LOG_CONFIGURATION.format(level="error"))
    master = settings.master or "local[*]"
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    conf = {
        **LOCAL_CONF,
        "spark.master": master,
        # Half of the machine's memory, between 1 and 4 GiB.
        "spark.driver.memory": f"{max(1024, min(4096, total // 2**21))}m",
        # Spark makes a directory `artifacts` in its working directory, which may be read-only.
        "spark.driver.extraJavaOptions": (
            f"{LATE_OPTIMISATION} -Dlog4j2.configurationFile={log_configuration.as_uri()}"
            f' "-Duser.dir={work_directory.absolute()}"'
        ),
        "spark.sql.warehouse.dir": str(work_directory / "warehouse"),
    }
    if master.startswith("local"):
        # Otherwise Spark asks the resolver for the host's own name, which may be unknown.
        conf |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if settings.properties_file:
        from pyconnect_reconcile.properties import read_properties

        conf |= read_properties(settings.properties_file)
    conf |= settings.conf
    if settings.jars:
        conf["spark.jars"] = ",".join(map(absolute, settings.jars))
    if settings.packages:
        conf["spark.jars.packages"] = ",".join(settings.packages)
    return conf


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _end(started: Future[SparkSession]) -> None:
    if started.exception() is None:
        started.result().stop()
    if not submitted():
        _end_jvm()


def _end_jvm() -> None:
    """End the JVM, which pyspark would keep until Python ends, and wait for it."""
    from pyspark import SparkContext

    if (gateway := SparkContext._gateway) is None:  # noqa: SLF001
        return
    gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        # Closing its standard input ends the JVM.
        process.stdin.close()
        process.wait(END_S)
    SparkContext._gateway = None  # noqa: SLF001
    SparkContext._jvm = None  # noqa: SLF001


@contextmanager
def _watched(session: SparkSession, events: Events) -> Iterator[SparkSession]:
    tracker = session.sparkContext.statusTracker()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(POLL_S):
            stages = [
                info
                for stage in tracker.getActiveStageIds()
                if (info := tracker.getStageInfo(stage))
            ]
            if stages:
                events.progress(
                    sum(info.numCompletedTasks for info in stages),
                    sum(info.numTasks for info in stages),
                )

    thread = threading.Thread(target=watch, name="spark-progress", daemon=True)
    thread.start()
    try:
        yield session
    finally:
        over.set()
        thread.join(POLL_S * 4)
