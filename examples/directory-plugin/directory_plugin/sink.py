"""BatchFileSink: records as lines of files that are complete when they can be seen."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from directory_plugin import VERSION
from pyconnect_api import (
    ConfigDef,
    ConfigType,
    Importance,
    NonEmptyString,
    Range,
    RetriableException,
    SinkConnector,
    SinkRecord,
    SinkTask,
    TopicPartition,
)

CONFIG = (
    ConfigDef()
    .define(
        "directory",
        ConfigType.STRING,
        validator=NonEmptyString(),
        importance=Importance.HIGH,
        documentation="The directory to write files to; made if it is not there.",
    )
    .define(
        "records.per.file",
        ConfigType.INT,
        default=1000,
        validator=Range.at_least(1),
        importance=Importance.MEDIUM,
        documentation="How many records make a file.",
    )
)


class BatchFileSinkConnector(SinkConnector):
    """Tasks share the partitions of the topics among them, so all get the same config."""

    def start(self, props: Mapping[str, str]) -> None:
        self.props = props

    def task_class(self) -> type[SinkTask]:
        return BatchFileSinkTask

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self.props] * max_tasks

    def stop(self) -> None:
        """Nothing runs in the background."""

    def config(self) -> ConfigDef:
        return CONFIG

    def version(self) -> str:
        return VERSION


class BatchFileSinkTask(SinkTask):
    """Buffers records of each partition; commits only what is in a file."""

    def start(self, props: Mapping[str, str]) -> None:
        config = CONFIG.parse(props)
        self.directory = Path(str(config["directory"]))
        self.directory.mkdir(parents=True, exist_ok=True)
        self.records_per_file = int(str(config["records.per.file"]))
        self.buffers: dict[TopicPartition, list[SinkRecord]] = {}

    def open(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self.buffers[partition] = []

    def put(self, records: Collection[SinkRecord]) -> None:
        for record in records:
            # The record's original topic, which transformations do not change.
            partition = TopicPartition(record.original_topic, record.original_kafka_partition)
            buffer = self.buffers[partition]
            if buffer and record.original_kafka_offset <= buffer[-1].original_kafka_offset:
                continue  # delivered again after a RetriableException
            buffer.append(record)
            if len(buffer) >= self.records_per_file:
                self.finish(partition)

    def pre_commit(
        self, current_offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int]:
        safe = {}
        for partition, offset in current_offsets.items():
            if self.context.is_closing:
                # The partition is revoked next; its new task reads the buffered records again.
                self.finish(partition)
            buffer = self.buffers[partition]
            safe[partition] = buffer[0].original_kafka_offset if buffer else offset
        return safe

    def finish(self, partition: TopicPartition) -> None:
        buffer = self.buffers[partition]
        if not buffer:
            return
        # The first offset names the file, so a repeated write replaces the same file.
        name = f"{partition}-{buffer[0].original_kafka_offset:010}.txt"
        temporary = self.directory / f".{name}"
        lines = "".join(f"{record.value}\n" for record in buffer)
        try:
            temporary.write_text(lines, encoding="utf-8")
            temporary.rename(self.directory / name)
        except OSError as error:
            self.context.timeout(5000)
            raise RetriableException(f"Cannot write {name}: {error}") from error
        buffer.clear()

    def close(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            del self.buffers[partition]

    def stop(self) -> None:
        """Nothing to release."""

    def version(self) -> str:
        return VERSION
