"""The job of a repair's process, and the records from which a repair starts.

A job names the file of the plan, which is also the backup. The agent's converters, transformations
and config providers make the records, so that a row is the one that the sink would have written,
and a record the one that the source would have written.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn, Self, TypeAlias

from pyconnect_agent.tasks.plugins import TaskPlugins
from pyconnect_agent.tasks.sink.pipeline import record_maker
from pyconnect_agent.tasks.source.pipeline import record_converter
from pyconnect_agent.tasks.worker_view import WorkerView
from pyconnect_api import (
    STRING_SCHEMA,
    ConnectException,
    DataException,
    SinkRecord,
    SourceRecord,
    TopicPartition,
)
from pyconnect_clients.config_values import find_variables
from pyconnect_reconcile.data_sides import FileSide, TablePosition, TableSide
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import count_of
from pyconnect_reconcile.report.contents import SCHEMA_VERSION
from pyconnect_reconcile.spec import MAIN, Cluster, Spec, TopicSide, question_of
from pyconnect_reconcile.topics.cluster_view import ClusterView
from pyconnect_reconcile.topics.snapshot import TopicsSnapshot, read_snapshot
from pyconnect_repair.plan import Findings, Place, Refused, Wanted, findings_of, key_of
from pyconnect_repair.sources import RepairRecord, messages_at, text_of

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The spec of this process; `config` is a connector's, `report` the directory of a plan's."""

    audit: Spec
    config: Mapping[str, str]
    rows: Path
    report: Path

    @property
    def origin(self) -> TopicSide:
        """The left side, whose records the other side lacks."""
        assert isinstance(self.audit.left, TopicSide)
        return self.audit.left

    def found(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return the report and its findings; ReconcileError if the files were changed."""
        try:
            report = json.loads((self.report / "report.json").read_text("utf-8"))
            text = (self.report / "findings" / "findings.ndjson").read_text("utf-8")
            lines = list(map(json.loads, filter(None, text.split("\n"))))
        except (OSError, ValueError) as exc:
            raise ReconcileError(
                f"{self.report}: the report cannot be read: {exc}", hint="audit again"
            ) from exc
        if (version := report.get("schema_version")) != SCHEMA_VERSION:
            raise ReconcileError(
                f"{self.report}: the report is of schema version {version}, not {SCHEMA_VERSION}",
                hint="audit again with this version",
            )
        if len(lines) != report["findings_kept"]:
            raise ReconcileError(
                f"{self.report}: the report has {len(lines):,} of its"
                f" {count_of(report['findings_kept'], 'finding')}: a file was cut or changed",
                hint="audit again",
            )
        return report, lines

    def read(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return the head of the plan and its changes; ReconcileError if they were edited."""
        try:
            text, _, digest = self.rows.read_text("utf-8").rpartition("\n")
        except (OSError, ValueError) as exc:
            raise ReconcileError(
                f"{self.rows}: the plan of the repair cannot be read: {exc}"
            ) from exc
        if sha256(text.encode()).hexdigest() != digest:
            raise ReconcileError(
                f"{self.rows}: the plan of the repair is not as it was written: the file was cut or"
                " changed, and nothing is done by it",
                hint="restore the file, or audit again and repair by the new report",
            )
        head, *lines = map(json.loads, text.split("\n"))
        if head["version"] != VERSION:
            raise ReconcileError(
                f"{self.rows}: the plan is of version {head['version']}, not {VERSION}",
                hint="repair and undo with the pyconnect that made the plan",
            )
        return head, lines

    def write(self, documents: Sequence[object]) -> None:
        """Write the plan to the disk before anything changes, readable by its owner only.

        Each document is a line; the last line is the SHA-256 of these lines.
        """
        text = "\n".join(map(json.dumps, documents))
        try:
            descriptor = os.open(self.rows, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(f"{text}\n{sha256(text.encode()).hexdigest()}")
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as exc:
            raise ReconcileError(
                f"{self.rows}: the plan of the repair cannot be written: {exc.strerror}",
                hint="set XDG_STATE_HOME to a directory with room that you can write",
            ) from exc

    def require_same(self, question: str) -> None:
        """Raise ReconcileError unless the audit would now ask the question of the report."""
        if question != question_of(self.audit):
            raise ReconcileError(
                "the report answers another question than an audit would now: a configuration has"
                " changed, or the audit had options",
                hint="give the audit's options again, or audit again and repair by the new report",
            )

    def require_topic_ids(self, side: TopicSide, ids: Mapping[str, str]) -> None:
        """Raise ReconcileError unless the side's topics are those of the report."""
        for topic in ClusterView(self.audit.clusters[side.cluster]).snapshot(side.topics).topics:
            if ids.get(topic.topic) != topic.topic_id:
                raise ReconcileError(
                    f"{topic.topic} was deleted and created again since the report",
                    hint="audit again",
                )


_ACCESS = ("connection.", "lake.", "store.", "s3.", "aws.", "iceberg.")
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


class ConnectorPlugins:
    """A connector's config with resolved references, and its plugins, until `close`."""

    def __init__(self, config: Mapping[str, str], cluster: Cluster, *, keyed: bool) -> None:
        for name in ("value.converter", *(["key.converter"] if keyed else [])):
            if name not in config:
                raise ReconcileError(
                    f"the connector's configuration names no {name}, and the worker's is not known"
                    " here",
                    hint=f"set {name} and its options in the connector's configuration",
                )
        providers = {k: v for k, v in config.items() if k.startswith("config.providers")}
        self._view = WorkerView(
            {
                "bootstrap.servers": cluster.bootstrap,
                "key.converter": _BYTES,
                "value.converter": _BYTES,
                **providers,
            }
        )
        self.config = self._view.resolve(
            {k: v for k, v in config.items() if k not in providers}
        ).values
        for name, value in self.config.items():
            if name.startswith(_ACCESS) and find_variables(value):
                raise ReconcileError(
                    f"{name} is a reference to a config provider that is not known here",
                    hint="use a provider named file, directory or env, which this machine can read",
                )
        self._plugins = TaskPlugins.of(self._view, self.config)

    def close(self) -> None:
        self._view.close()


class WrittenRecords(ConnectorPlugins):
    """A source's view of its records; it has no transformations."""

    def __init__(self, config: Mapping[str, str], cluster: Cluster) -> None:
        super().__init__(config, cluster, keyed=True)
        self._outgoing_of = record_converter(self._plugins.converters, _fail)

    def written(self, record: SourceRecord) -> RepairRecord:
        """Return the record that the source would send; Refused if a converter cannot write it."""
        try:
            _, value, key, partition, timestamp_ms, headers = self._outgoing_of(record, record)
        except DataException as exc:
            raise Refused("a converter cannot write it") from exc
        except ConnectException as exc:
            # The error's text may have values of the row.
            raise ReconcileError(f"a converter failed: {type(exc).__name__}") from exc
        return RepairRecord(
            partition=partition,
            key=text_of(key),
            value=text_of(value),
            headers=[(name, text_of(content)) for name, content in headers or ()],
            timestamp_ms=timestamp_ms,
        )


class ReadRecords(ConnectorPlugins):
    """A sink's view of its topics' records."""

    def __init__(self, config: Mapping[str, str], cluster: Cluster) -> None:
        super().__init__(config, cluster, keyed=config.get("pk.mode") == "record_key")
        self._cluster = cluster
        self._record_of = record_maker(self._plugins.converters, _fail)

    def at(self, places: Sequence[Place]) -> Iterator[tuple[Place, SinkRecord | None]]:
        """Yield the record of each place; None if a transformation drops it.

        ReconcileError for a place without a record: it was removed, or its transaction aborted.
        """
        for place, message in messages_at(self._cluster, places):
            record: Any = self._record_of(message, *place)
            for stage in self._plugins.stages:
                record = None if record is None else stage.apply(record)
            yield place, record


def _fail(_stage: object, _operator: type, error: Exception, *_operation: object) -> NoReturn:
    raise error


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """A report that is the basis of a plan; `expected` are the sink's offsets at its time."""

    job: Job
    report: Mapping[str, Any]
    found: Findings[Wanted]
    before: TopicsSnapshot
    expected: Mapping[TopicPartition, int]

    @classmethod
    def of(cls, job: Job) -> Self:
        """Read the report of a job; ReconcileError if it allows no plan, or the sink moved on."""
        report, lines = job.found()
        found = findings_of(report, lines)
        job.require_same(report["question"])
        before = read_snapshot(report).of_topics(job.origin.topics)
        job.require_topic_ids(job.origin, {each.topic: each.topic_id for each in before.topics})
        expected = {
            TopicPartition(part.topic, part.partition): (
                part.end if part.asked_end is None else part.asked_end
            )
            for part in before.partitions
        }
        _require_committed(job.audit, expected)
        return cls(job=job, report=report, found=found, before=before, expected=expected)

    def records(self) -> tuple[Mapping[str, str], Mapping[Place, SinkRecord | None]]:
        """Return the connector's config, and the records that the findings name."""
        return read_records(self.job, [each.place for each in self.found.targets if each.place])

    def head(self) -> dict[str, object]:
        """Return the members of a plan's head that `require_unmoved` reads."""
        return {
            "version": VERSION,
            "target": self.job.audit.target,
            "question": self.report["question"],
            "topics": {topic.topic: topic.topic_id for topic in self.before.topics},
            "offsets": [[p.topic, p.partition, offset] for p, offset in self.expected.items()],
        }


def require_unmoved(job: Job, head: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """Return the sink's offsets in a plan; ReconcileError if the sink or a topic has changed."""
    job.require_same(head["question"])
    job.require_topic_ids(job.origin, head["topics"])
    expected = {TopicPartition(topic, part): offset for topic, part, offset in head["offsets"]}
    _require_committed(job.audit, expected)
    return expected


def read_records(
    job: Job, places: Sequence[Place] = ()
) -> tuple[Mapping[str, str], Mapping[Place, SinkRecord | None]]:
    """Return the connector's config with resolved references, and the records at places."""
    records = ReadRecords(job.config, job.audit.clusters[MAIN])
    try:
        return records.config, dict(records.at(places))
    finally:
        records.close()


def _require_committed(audit: Spec, expected: Mapping[TopicPartition, int]) -> None:
    """Raise ReconcileError if the sink's committed offsets are beyond those of the report."""
    for partition, offset in expected.items():
        now = audit.until.get(partition.topic, {}).get(partition.partition, offset)
        if now > offset:
            raise ReconcileError(
                f"the sink has moved on since the report: its offset of {partition} is {now}, not"
                f" {offset}",
                hint="stop the connector, audit again, and repair by the new report",
            )


Row: TypeAlias = Mapping[str, Any]
"""The place of a row in a report: `table` and `key`, or `file` and `row`."""


@contextmanager
def source_records(job: Job, digest: str | None = None) -> Iterator[Callable[[Row], RepairRecord]]:
    """Yield a function that makes the record of a row of the left side.

    The function raises Refused for a row without a record, ReconcileError for a changed row.
    `digest` is that of a file's lines in the report, to which its row numbers belong.
    """
    side, copy = job.audit.left, job.audit.right
    assert isinstance(copy, TopicSide)
    [topic] = copy.topics
    with closing(WrittenRecords(job.config, job.audit.clusters[copy.cluster])) as records:
        match side:
            case TableSide(position=TablePosition() as position):
                # The import needs libraries that files do not need.
                from pyconnect_repair.sources import source_table

                def key(row: Row) -> Mapping[str, str]:
                    found = key_of(row.get("key") or "")
                    if found is None:
                        raise Refused(
                            "the report does not name the row: it has no key, or keys are hidden"
                        )
                    return found

                with source_table(records.config, topic, position) as table:
                    yield lambda row: records.written(table.record(key(row)))
            case FileSide(limit_bytes=int() as end):
                line_of = _lines(side.paths[0], topic, end, digest)
                yield lambda row: records.written(line_of(row))
            case _:
                raise ReconcileError(
                    "the left side of the report has no committed position of the connector",
                    hint="audit it by its name alone: pyconnect reconcile source-topic CONNECTOR",
                )


def _lines(file: str, topic: str, end: int, digest: str | None) -> Callable[[Row], SourceRecord]:
    """Return a function that returns a line of the committed part; lines must end with LF alone."""
    try:
        with Path(file).open("rb") as stream:
            content = stream.read(end)
    except OSError as exc:
        raise ReconcileError(f"{file} cannot be read: {exc.strerror}") from exc
    if len(content) < end:
        raise ReconcileError(f"{file} is shorter than it was at the report", hint="audit again")
    if digest is not None and sha256(content).hexdigest() != digest:
        raise ReconcileError(
            f"the lines of {file} that the source has read are others than at the report, or the"
            " report is of an earlier version",
            hint="put the file back if it was replaced; then audit again",
        )
    lines = content.split(b"\n")

    def line_of(row: Row) -> SourceRecord:
        number = row.get("row")
        if number is None or not 0 < number < len(lines) or b"\r" in content:
            raise Refused("the report does not name the line, or lines of the file end with CR")
        text = lines[number - 1].decode("utf-8", "replace")
        return SourceRecord({"filename": file}, {}, topic, value_schema=STRING_SCHEMA, value=text)

    return line_of
