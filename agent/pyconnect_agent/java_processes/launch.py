"""The Java, jars and options of a Java process, and its directory for temporary files.

Neither `deleteOnExit` nor shutdown hooks run at the end of these processes, so each has a directory
of its own, which is removed with it. Both the Java process and the process that started it hold a
lock on it. When both were killed, the worker or the next process finds the directory without a lock
and removes it.

The worker's file sets the usual values of memory and options, and the largest heap that a connector
may have.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pyconnect_agent.core.config.agent_keys import (
    DEFAULT_HEAP,
    ENVIRONMENT,
    HEAP,
    HEAP_LIMIT,
    OPTIONS,
    heap_bytes,
    option_words,
    variables,
)
from pyconnect_api import ConfigException

INITIAL_HEAP = "18m"
"""Set because Java's own choice depends on the machine, and Java uses all of it before it
collects.
"""
SERIAL = ("-XX:+UseSerialGC", "-XX:NewSize=6m", "-XX:MaxNewSize=16m", "-XX:MinHeapFreeRatio=60")
"""Java's own young generation would be a third of the largest heap, which the old generation then
lacks for records. One of 6 MiB grows with the heap up to 16. With Java's own free ratio of 40, the
heap of a task that queues records is collected twice as often.
"""
CONNECTOR_INITIAL_HEAP = "6m"
CONNECTOR_SERIAL = ("-XX:+UseSerialGC", "-Xmn2m")
"""The options for a connector itself, which has no records."""

TEMPORARY = "-Djava.io.tmpdir="
_JMX = "com.sun.management.jmxremote"
_OPTION_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Variables from which Java reads further options."""

UNKNOWN_VERSION = "undefined"
"""The version of a class that is in no list of plugins."""


@dataclass(frozen=True, slots=True)
class JavaClass:
    """A class of a plugin; `jars`: the class path of its location, empty for Kafka's own.

    `version`: that of the plugin, for metrics. `kafka`: see `PluginDesc`.
    """

    name: str
    jars: tuple[str, ...] = ()
    version: str = field(default=UNKNOWN_VERSION, compare=False)
    kafka: str = field(default="", compare=False)

    def to_json(self) -> dict[str, object]:
        return {"class": self.name, "jars": list(self.jars)}


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaInstallation:
    """A Java, Kafka's jars with the API of connectors, and the jar of the host.

    `archive`: the path of the archive of their classes, which may not exist.
    """

    java: str
    kafka_jars: tuple[str, ...]
    host_jar: str
    archive: str = ""

    @property
    def class_path(self) -> str:
        return ":".join((self.host_jar, *self.kafka_jars))


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaOptions:
    """Options of a Java process; `heap` and `initial_heap`: the values of `-Xmx` and `-Xms`.

    `heap_key`: the key of a configuration that sets the heap, "" without one. `quick`: a
    short-lived process, without optimised code. `environment`: variables added to this process's.
    """

    heap: str = DEFAULT_HEAP
    heap_key: str = ""
    initial_heap: str = INITIAL_HEAP
    options: tuple[str, ...] = SERIAL
    quick: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)

    def arguments(self) -> tuple[str, ...]:
        """Return the options of the command line."""
        return (
            # The process ends at a full heap: after a lost allocation its state may be wrong.
            "-XX:+ExitOnOutOfMemoryError",
            "-XX:+DisplayVMOutputToStderr",
            "-Djava.awt.headless=true",
            # Otherwise Log4j would warn that a plugin's copy and the host both write the log.
            "-Dlog4j2.StatusLogger.level=ERROR",
            # For recursive methods, such as those that write JSON, the compiler took 12 MiB more.
            "-XX:MaxRecursiveInlineLevel=0",
            # Half of the usual: compiling takes a third less, and the compiled code is as quick.
            "-XX:FreqInlineSize=150",
            *(("-XX:TieredStopAtLevel=1",) if self.quick else ()),
            f"-Xms{self.initial_heap}",
            *self.options,
            f"-Xmx{self.heap}",
        )

    def temporary_base(self) -> Path:
        """Return the directory in which the process's temporary directory is made."""
        given = [each.partition("=")[2] for each in self.options if each.startswith(TEMPORARY)]
        return Path(given[-1] if given else tempfile.gettempdir())

    def without_jmx(self) -> tuple[JavaOptions, tuple[str, ...]]:
        """Return the options without those of JMX's ports, and those that were left out.

        Every process of the worker would open the same port, and only the first one can.
        """
        environment = dict(self.environment)
        dropped = [each for each in self.options if _JMX in each]
        for name in _OPTION_VARIABLES:
            words = (environment.get(name) or os.environ.get(name, "")).split()
            if found := [word for word in words if word.startswith(f"-D{_JMX}")]:
                dropped += found
                environment[name] = " ".join(word for word in words if word not in found)
        options = tuple(each for each in self.options if _JMX not in each)
        return replace(self, options=options, environment=environment), tuple(dropped)


def is_property(option: str) -> bool:
    """Return whether an option sets a property, whose value may be secret."""
    return option.startswith("-D")


TEMPORARY_PREFIX = "pyconnect-java-"


class TemporaryDirectory:
    """A new directory that only this user can read; `descriptor` holds the lock."""

    def __init__(self, base: Path) -> None:
        """Make the directory in `base`. Raises OSError."""
        while True:
            # Another process may remove the directory as a leftover until it is locked.
            self.path = Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX, dir=base))
            try:
                self.descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                continue
            if _lock(self.descriptor) and self.path.exists():
                return
            os.close(self.descriptor)

    def remove(self) -> None:
        """Remove the directory with its content; later calls have no effect."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(descriptor)


def remove_leftovers(base: Path) -> None:
    """Remove the directories of processes that are gone."""
    try:
        directories = list(base.glob(f"{TEMPORARY_PREFIX}*"))
    except OSError:
        return
    for found in directories:
        with contextlib.suppress(OSError):
            descriptor = os.open(found, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(descriptor).st_uid == os.geteuid() and _lock(descriptor):
                    shutil.rmtree(found, ignore_errors=True)
            finally:
                os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


SHARED_OPTIONS = "-XX:+UseSerialGC -XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=40"
_OF_JMX = "-Dcom.sun.management."
_DEFAULTS = {HEAP: DEFAULT_HEAP, HEAP_LIMIT: "1g", OPTIONS: " ".join(SERIAL)}


def java_options(
    worker: Mapping[str, str | None],
    connector: Mapping[str, str],
    *,
    quick: bool = False,
    shared: bool = False,
) -> JavaOptions:
    """Return the options of a connector's task; with `quick` those of the connector itself.

    `shared`: of a process for several, which has the largest heap unless a key sets one.

    A connector's own options must be properties (-Dname=value): others could run programs, and
    those of JMX open a port by which code can be loaded. Raises ConfigException.
    """
    usual = {key: worker.get(key) or default for key, default in _DEFAULTS.items()}
    initial_heap = INITIAL_HEAP
    if shared:
        usual |= {
            HEAP: worker.get(HEAP) or usual[HEAP_LIMIT],
            OPTIONS: worker.get(OPTIONS) or SHARED_OPTIONS,
        }
    if quick and not worker.get(OPTIONS):
        usual[OPTIONS] = " ".join(CONNECTOR_SERIAL)
        initial_heap = CONNECTOR_INITIAL_HEAP
    heap = connector.get(HEAP, usual[HEAP])
    if heap_bytes(HEAP, heap) > heap_bytes(HEAP_LIMIT, usual[HEAP_LIMIT]) and HEAP in connector:
        raise ConfigException(
            f"Invalid value {heap} for configuration {HEAP}: the worker allows connectors "
            f"{usual[HEAP_LIMIT]} at most ({HEAP_LIMIT})"
        )
    own = option_words(connector.get(OPTIONS, ""))
    for option in own:
        if not option.startswith("-D") or option.startswith(_OF_JMX):
            raise ConfigException(
                f"Invalid value {option} for configuration {OPTIONS}: a connector may set "
                "properties (-Dname=value) only, and not those of JMX; the worker's file may set "
                "other options"
            )
    return JavaOptions(
        heap=heap,
        heap_key=HEAP,
        initial_heap=min(heap, initial_heap, key=partial(heap_bytes, HEAP)),
        options=(*option_words(usual[OPTIONS]), *own),
        environment=variables(worker.get(ENVIRONMENT) or ""),
        quick=quick,
    )
