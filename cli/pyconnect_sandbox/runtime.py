"""The runtime of a class of Kafka: a Java and a directory of jars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyconnect_sandbox.class_archive import archive_name, archive_options
from pyconnect_sandbox.java import Java

# Short-lived servers on small machines: start quickly and stay small, throughput comes second.
QUICK_START_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaRuntime:
    """A Java and the directory of Kafka's jars (a distribution's `libs`, or the cache)."""

    java: Java
    libs: Path

    def command(
        self,
        main_class: str,
        *arguments: str,
        heap_mb: int,
        log_configuration: Path | None = None,
        jvm_options: Sequence[str] = QUICK_START_OPTIONS,
        server_directory: Path | None = None,
    ) -> list[str]:
        """Return the command that runs `main_class` with at most `heap_mb` MiB of heap.

        With `server_directory`, the directory of a server, the class archive of `main_class` is
        used, or written when it ends (see `class_archive`). It is not for a program that runs once:
        writing it takes longer than the program itself.
        """
        archive: list[str] = []
        if server_directory is not None:
            name = archive_name(self.java.executable, self.libs, main_class, jvm_options)
            archive = archive_options(name, server_directory)
        logging = [] if log_configuration is None else [log_configuration_option(log_configuration)]
        return [
            str(self.java.executable),
            f"-Xmx{heap_mb}m",
            *jvm_options,
            *archive,
            *logging,
            "-cp",
            f"{self.libs}/*",
            main_class,
            *arguments,
        ]


def log_configuration_option(path: Path) -> str:
    """Return the option that makes log4j 2 read `path`."""
    return f"-Dlog4j2.configurationFile={path.as_uri()}"


def write_log_configuration(path: Path, log_path: Path) -> None:
    """Write a log4j 2 configuration that logs to `log_path`, rolled at 20 MB, three kept."""
    path.write_text(
        f"""\
status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log_path}
appender.file.filePattern = {log_path}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = [%d] %p %m (%c)%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
# Hundreds of lines at every start that the properties file says better.
logger.config.name = org.apache.kafka.common.config.AbstractConfig
logger.config.level = WARN
logger.broker.name = kafka.server.KafkaConfig
logger.broker.level = WARN
logger.state.name = state.change.logger
logger.state.level = WARN
rootLogger.level = INFO
rootLogger.appenderRef.file.ref = file
"""
    )
