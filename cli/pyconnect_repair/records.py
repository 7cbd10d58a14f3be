"""Records of a topic by their places, as the connector's converters and transformations make them.

The converters, transformations and config providers are the agent's own, so that a row is what the
sink would have written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

from pyconnect_agent.tasks.setup.plugins import TaskPlugins
from pyconnect_agent.tasks.setup.worker_view import WorkerView
from pyconnect_agent.tasks.sink.pipeline import record_maker
from pyconnect_api import SinkRecord
from pyconnect_clients.references import find_variables
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import Cluster
from pyconnect_repair.messages import messages_at
from pyconnect_repair.plan import Place

_ACCESS = ("connection.", "lake.", "store.", "s3.", "aws.", "iceberg.")
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


class ReadRecords:
    """The connector's view of its topics' records. Closed by `close`."""

    def __init__(self, config: Mapping[str, str], cluster: Cluster) -> None:
        keyed = config.get("pk.mode") == "record_key"
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
        self._cluster = cluster
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
        self._record_of = record_maker(self._plugins.converters, _fail)

    def close(self) -> None:
        self._view.close()

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
