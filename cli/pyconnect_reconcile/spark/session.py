"""The Spark session of one run, and how its work is watched and cancelled.

Under spark-submit the session is configured already, and only what the jobs rely on is set. Else
a local one is made, or one on the master or the Spark Connect server (`connect`) that the spec
names.

A local session starts and ends in a thread of its own. Signals raise KeyboardInterrupt in the main
thread: none loses the JVM, and a call to the JVM that one interrupts does not disturb its end.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from pyconnect_clients.installation import install_command
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.files import absolute
from pyconnect_reconcile.properties import submitted
from pyconnect_reconcile.spark import connect
from pyconnect_reconcile.spec import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S = 0.5
END_S = 600
"""A JVM that writes an archive of its classes does so when it ends: minutes on a busy machine."""
# Names of options whose values Spark must not show in plans, its UI or its logs.
HIDDEN_OPTIONS = "secret|password|token|access[.]?key|url|jaas|sasl|ssl[.]key|credential"
REDACTED = f"(?i){HIDDEN_OPTIONS}"
# A Spark Connect server shows requests as text, where options are entries of a map.
REDACTED_TEXT = rf'(?i)key: "[^"]*({HIDDEN_OPTIONS})[^"]*"\s+value: "[^"\\]*+(\\.[^"\\]*+)*+"'
# Adaptive rules that trust the row count of a persisted frame. Spark may take the count before all
# partitions are stored (SPARK-57547), and then drops rows: findings would be missing in silence.
TRUST_IN_COUNTS = (
    "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation",
    "org.apache.spark.sql.catalyst.optimizer.EliminateLimits",
    "org.apache.spark.sql.catalyst.optimizer.OptimizeOneRowPlan",
)
# Every job relies on these, also in sessions of other programs.
JOB_CONF = {
    # Sums and casts of the data must not end a run; the jobs count what does not parse.
    "spark.sql.ansi.enabled": "false",
    # Times of day are texts: releases before 4.1 have no type for them.
    "spark.sql.timeType.enabled": "false",
    # Spark 3.5 refuses dates before 1900 in files, and texts of times that Spark 2 read otherwise.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.session.timeZone": "UTC",
    # What a file holds is read, or the run ends.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Names of JSON members, Kafka fields and columns of Parquet are case-sensitive.
    "spark.sql.caseSensitive": "true",
    # All three write the expressions behind the key of a join into one, each wherever it is used:
    # the plan of a compare would take minutes. There are no partitions of tables to leave out.
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
# records needs a fifth less processor time so, and a large one reaches these numbers at once.
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
    """Make a session and end it, with its JVM, when the block ends; progress goes to `events`."""
    with starting_session(
        settings, app_name=app_name, work_directory=work_directory, events=events, at_once=True
    ) as session:
        yield session()


@contextmanager
def starting_session(
    settings: SparkSettings, *, app_name: str, work_directory: Path, events: Events, at_once: bool
) -> Iterator[Callable[[], SparkSession]]:
    """As `spark_session`, but return a function that returns the session when it has started.

    The first call starts it. With `at_once` a local session starts while the caller works.
    """
    with ExitStack() as stack:
        if url := connect.remote_of(settings):
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
    """Return a function that starts a session, once; it has ended when the block has."""
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
        session = connect.connect(url, app_name)
    try:
        with _connect_errors_translated():
            connect.set_up(session, settings)
            _rely_on(session)
        connect.tell_progress(session, events)
        with connect.cancelled_by_signals(session):
            yield session
    finally:
        connect.release(session)


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
        # The client of Spark Connect imports more than pyspark brings.
        message = f"Spark Connect needs more packages: {_first_line(exc)}"
        raise ReconcileError(
            message, hint=f"install them: {install_command('reconcile-connect')}"
        ) from exc
    except PySparkException as exc:
        raise ReconcileError(f"Spark Connect gave no session: {_first_line(exc)}") from exc


def _session(
    settings: SparkSettings, app_name: str, work_directory: Path, over: threading.Event
) -> SparkSession:
    """Start a session, but end after the JVM's start if the caller needs none any more."""
    try:
        from pyspark import SparkConf, SparkContext
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as exc:
        raise ReconcileError(
            "Spark is not installed", hint=f"install it: {install_command('reconcile')}"
        ) from exc
    # A master was named: the environment must not make it another session.
    os.environ.pop(connect.REMOTE_VARIABLE, None)
    conf = {} if submitted() else _local_conf(settings, work_directory)
    builder = SparkSession.builder.appName(app_name)
    for key, value in conf.items():
        builder = builder.config(key, value)
    try:
        if conf:
            # The JVM that the next session of this process uses; not in the main thread. pyspark
            # knows the process only once it has answered. An exception before that, such as that
            # of a signal in the main thread, would leave a JVM that finds its connection file's
            # directory removed, and then waits forever.
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
    """Return what the JVM and the session are started with; the user's `conf` wins."""
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
        # Spark makes a directory `artifacts` where it runs, which may be read-only.
        "spark.driver.extraJavaOptions": (
            f"{LATE_OPTIMISATION} -Dlog4j2.configurationFile={log_configuration.as_uri()}"
            f' "-Duser.dir={work_directory.absolute()}"'
        ),
        "spark.sql.warehouse.dir": str(work_directory / "warehouse"),
    }
    if master.startswith("local"):
        # Else Spark asks the resolver for the host's own name, which not every machine knows.
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
    """End the JVM, which pyspark leaves until Python ends, and wait for it."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway  # noqa: SLF001
    if gateway is None:
        return
    gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        # The JVM ends with its standard input.
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
