"""DirectorySource: one record for each file that appears in a directory."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from directory_plugin import VERSION
from pyconnect_api import (
    STRING_SCHEMA,
    ConfigDef,
    ConfigType,
    ConnectException,
    ExactlyOnceSupport,
    Importance,
    NonEmptyString,
    SourceConnector,
    SourceRecord,
    SourceTask,
)

CONFIG = (
    ConfigDef()
    .define(
        "directory",
        ConfigType.STRING,
        validator=NonEmptyString(),
        importance=Importance.HIGH,
        documentation="The directory to read files from, in the order of their names.",
    )
    .define(
        "topic",
        ConfigType.STRING,
        validator=NonEmptyString(),
        importance=Importance.HIGH,
        documentation="The topic to write to.",
    )
)


class DirectorySourceConnector(SourceConnector):
    """Has one task: files are read in the order of their names, which tasks cannot share."""

    def start(self, props: Mapping[str, str]) -> None:
        self.props = props

    def task_class(self) -> type[SourceTask]:
        return DirectorySourceTask

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self.props]

    def stop(self) -> None:
        """Nothing runs in the background."""

    def config(self) -> ConfigDef:
        return CONFIG

    def version(self) -> str:
        return VERSION

    def exactly_once_support(
        self, connector_configs: Mapping[str, str | None]
    ) -> ExactlyOnceSupport:
        # Each file is read once, so the offset needs only the last file's name.
        return ExactlyOnceSupport.SUPPORTED


class DirectorySourceTask(SourceTask):
    """Remembers the name of the last file as its source offset."""

    def start(self, props: Mapping[str, str]) -> None:
        config = CONFIG.parse(props)
        self.directory = Path(str(config["directory"]))
        self.topic = str(config["topic"])
        self.partition = {"directory": str(self.directory)}
        offset = self.context.offset_storage_reader.offset(self.partition)
        self.last = str(offset["name"]) if offset else ""

    def poll(self) -> Sequence[SourceRecord] | None:
        try:
            names = sorted(path.name for path in self.directory.iterdir() if path.is_file())
        except OSError as error:
            raise ConnectException(f"Cannot read {self.directory}: {error}") from error
        new = [name for name in names if name > self.last]
        if not new:
            # Not time.sleep(): this wait ends when the worker stops the task.
            self.context.stop_requested.wait(1.0)
            return None
        self.last = new[-1]
        return [self.record(name) for name in new]

    def record(self, name: str) -> SourceRecord:
        return SourceRecord(
            source_partition=self.partition,
            source_offset={"name": name},
            topic=self.topic,
            key_schema=STRING_SCHEMA,
            key=name,
            value_schema=STRING_SCHEMA,
            value=(self.directory / name).read_text(encoding="utf-8"),
        )

    def stop(self) -> None:
        """Nothing to release."""

    def version(self) -> str:
        return VERSION
