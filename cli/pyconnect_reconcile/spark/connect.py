"""Sessions at a Spark Connect server: reached in bounded time, watched and cancelled over gRPC.

The server is shared. Ending a session interrupts what it runs and releases what it holds, and
nothing of others; master, memory and the Kafka source are the server's own.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

from pyconnect_reconcile.errors import InvalidQuestion, ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.spec import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.connect.session import SparkSession as RemoteSession

REMOTE_VARIABLE = "SPARK_REMOTE"
REACH_S = 10.0
# Of a request to a server that went away: 0.2 s, 0.4 s, … in all 6 s. PySpark waits for 10 minutes.
RETRIES = {"max_retries": 5, "initial_backoff": 200, "backoff_multiplier": 2.0, "max_backoff": 5000}
INTERRUPT_S = 0.5
SQL_SETTINGS = "spark.sql."


def remote_of(settings: SparkSettings) -> str | None:
    """Return the server's URL: the spec's, or that of the environment unless a master is named."""
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
        # Its text would quote the parameters, of which one may be a token.
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
    # Settings follow later: with them PySpark would send a request before its time limit is set.
    session = SparkSession.builder.remote(url).create()
    _limit_retries(session, **RETRIES)
    session.addTag(app_name.replace(",", " "))
    return session


def set_up(session: SparkSession, settings: SparkSettings) -> None:
    """Give the session the user's settings and jars; ReconcileError for what it cannot have."""
    from pyspark.errors import AnalysisException

    from pyconnect_reconcile.properties import read_properties

    _require_release(f"the server has Spark {session.version}", session.version)
    if settings.packages:
        raise InvalidQuestion(
            "a Spark Connect server does not accept packages from a session",
            hint="start the server with --packages, or give the jars with --jars",
        )
    # A file of settings may be for local sessions too: what it says of JVMs is left out.
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
        # Spark puts a plan that is cached into its canonical form when it meets another one in the
        # cache: if there is none, then in the next query, which may be one of a session without
        # these jars. For functions of a jar (`from_avro`) that query would fail with
        # AVRO_NOT_LOADED_SQL_FUNCTIONS_UNUSABLE. This row is the other plan.
        _own_row(session).persist()


@contextmanager
def cancelled_by_signals(session: SparkSession) -> Iterator[None]:
    """Have SIGINT and SIGTERM interrupt what the session runs; then raise KeyboardInterrupt.

    An exception in the midst of a call would leave its operation behind (see `release`), so the
    call is waited for: the server ends it with an error. A second signal does not wait.
    """
    wanted, over = threading.Event(), threading.Event()

    def interrupt() -> None:
        # Until the session ends: between two operations there is nothing to interrupt.
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
    """Interrupt what the session runs and give it back; the server stays, dead or alive.

    Operations are given back first: a server writes the requests of those that end with their
    session to its log, with all options.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator

    _limit_retries(session, **{**RETRIES, "max_retries": 0})
    # A server that has gone took with it what it ran.
    with suppress(PySparkException):
        session.interruptAll()
        _own_row(session).unpersist()
    if hasattr(ExecutePlanResponseReattachableIterator, "shutdown"):
        ExecutePlanResponseReattachableIterator.shutdown()
    else:  # Spark 4.2: each client knows its own requests.
        wait(session.client._release_futures, INTERRUPT_S * 20)  # noqa: SLF001
    session.stop()


def tell_progress(session: SparkSession, events: Events) -> None:
    """Report the tasks of what the session runs, as the server sends them."""

    def told(*, stages: Iterable[Any] | None, **_more: object) -> None:
        known = list(stages or ())
        if known:
            events.progress(
                sum(stage.num_completed_tasks for stage in known),
                sum(stage.num_tasks for stage in known),
            )

    session.registerProgressHandler(told)


def _own_row(session: SparkSession) -> DataFrame:
    """Return a row that no other session has: equal plans share one place in the cache."""
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
