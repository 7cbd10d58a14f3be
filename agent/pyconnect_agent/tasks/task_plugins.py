"""The plugins that convert and change a task's records.

Layer: tasks. Kafka: what `Worker.startTask` makes for tasks of either kind. A converter is the
connector's own, else the worker's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from pyconnect_agent.tasks.transform_chain import TransformationStage
from pyconnect_agent.tasks.worker_view import WorkerView
from pyconnect_api import Converter, HeaderConverter


@dataclass(frozen=True, slots=True, kw_only=True)
class Converters:
    key: Converter
    value: Converter
    header: HeaderConverter


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlugins:
    converters: Converters
    stages: Sequence[TransformationStage]

    @classmethod
    def of(cls, worker: WorkerView, connector_config: Mapping[str, str]) -> TaskPlugins:
        """Make and configure them. Raises what they raise, and ConfigException."""
        return cls(
            converters=Converters(
                key=worker.converter("key", connector_config),
                value=worker.converter("value", connector_config),
                header=worker.header_converter(connector_config),
            ),
            stages=worker.transformations(connector_config),
        )

    def close_with(self, closing: ExitStack) -> None:
        """Have them closed at the end of `closing`, transformations first, whatever fails."""
        for converter in (self.converters.key, self.converters.value, self.converters.header):
            closing.callback(converter.close)
        for stage in self.stages:
            closing.callback(stage.close)
