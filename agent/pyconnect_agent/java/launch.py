"""The Java, jars and options of a Java process.

Layer: java. Values only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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

UNKNOWN_VERSION = "undefined"
"""Of a class that no list of plugins has."""


@dataclass(frozen=True, slots=True)
class JavaClass:
    """A class of a plugin; `jars`: the class path of its location, empty for Kafka's own.

    `version`: that of the plugin, for metrics.
    """

    name: str
    jars: tuple[str, ...] = ()
    version: str = field(default=UNKNOWN_VERSION, compare=False)

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


def is_property(option: str) -> bool:
    """Return whether an option sets a property, whose value may be secret."""
    return option.startswith("-D")
