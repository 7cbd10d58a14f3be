"""The Java, jars and options of a Java process.

Layer: java_processes. Values only.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyconnect_agent.core.config.java_keys import DEFAULT_HEAP

INITIAL_HEAP = "18m"
"""Java's own choice depends on the machine, and Java uses all of it before it collects garbage."""
SERIAL = (
    "-XX:+UseSerialGC",
    "-XX:NewSize=6m",
    "-XX:MaxNewSize=16m",
    "-XX:MinHeapFreeRatio=60",
)
"""Java's own young generation would be a third of the largest heap, which then lacks in the old one
for records. One of 6 MiB grows with the heap up to 16. With Java's own free ratio of 40, the heap
of a task that queues records is collected twice as often."""
CONNECTOR_INITIAL_HEAP = "6m"
CONNECTOR_SERIAL = ("-XX:+UseSerialGC", "-Xmn2m")
"""A connector itself has no records."""

TEMPORARY = "-Djava.io.tmpdir="
_JMX = "com.sun.management.jmxremote"
_OPTION_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Java reads further options from them."""

UNKNOWN_VERSION = "undefined"
"""Of a class that no list of plugins has."""


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
    """`heap` and `initial_heap`: the values of `-Xmx` and `-Xms`.

    `heap_key`: the key of a configuration that sets the heap, "" without one. `quick`: a
    short-lived process, without optimised code. `environment`: beside this process's.
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
            # Log4j would warn that a plugin's copy and the host both write the log.
            "-Dlog4j2.StatusLogger.level=ERROR",
            # The compiler took 12 MiB more for recursive methods, such as those that write JSON.
            "-XX:MaxRecursiveInlineLevel=0",
            # Half of the usual: to compile takes a third less, what is compiled is as quick.
            "-XX:FreqInlineSize=150",
            *(("-XX:TieredStopAtLevel=1",) if self.quick else ()),
            f"-Xms{self.initial_heap}",
            *self.options,
            f"-Xmx{self.heap}",
        )

    def temporary_base(self) -> Path:
        """Return the directory in which the process's own one for temporary files is made."""
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
