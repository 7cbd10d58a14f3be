"""Records as a connector's converters and transformations make them, from a topic or for one.

The converters, transformations and config providers are the agent's own, so that a row is what the
sink would have written, and a record what the source would have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

from pyconnect_agent.tasks.setup.plugins import TaskPlugins
from pyconnect_agent.tasks.setup.worker_view import WorkerView
from pyconnect_agent.tasks.sink.pipeline import record_maker
from pyconnect_agent.tasks.source.pipeline import record_converter
from pyconnect_api import ConnectException, DataException, SinkRecord, SourceRecord
from pyconnect_clients.references import find_variables
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import Cluster
from pyconnect_repair.messages import RepairRecord, messages_at, text_of
from pyconnect_repair.plan import Place, Refused

_ACCESS = ("connection.", "lake.", "store.", "s3.", "aws.", "iceberg.")
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


class ConnectorPlugins:
    """A connector's config with what its references lead to, and its plugins, until `close`."""

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
        """Return what the source's producer would get; Refused when a converter does not."""
        try:
            _, value, key, partition, timestamp_ms, headers = self._outgoing_of(record, record)
        except DataException as exc:
            raise Refused("a converter cannot write it") from exc
        except ConnectException as exc:
            # Its text may have values of the row.
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
        """Yield the record of each place; None: a transformation drops it.

        ReconcileError for a place without a record: it was removed, or its transaction aborted.
        """
        for place, message in messages_at(self._cluster, places):
            yield place, self._converted(message)

    def _converted(self, message: Any) -> SinkRecord | None:
        place = message.topic(), message.partition(), message.offset()
        record: Any = self._record_of(message, *place)
        for stage in self._plugins.stages:
            record = None if record is None else stage.apply(record)
        return record  # type: ignore[no-any-return]  # what plugins make of a record


def _fail(_stage: object, _operator: type, error: Exception, *_operation: object) -> NoReturn:
    raise error
