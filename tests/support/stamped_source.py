"""A source of one record with everything a record can carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyconnect_api import ConnectHeaders, SourceConnector, SourceRecord, SourceTask
from pyconnect_api.configdef import ConfigDef
from pyconnect_api.schema import STRING_SCHEMA

STAMPED_SOURCE = f"{__name__}.StampedSource"
TIMESTAMP_MS = 1_234


class StampedTask(SourceTask):
    def version(self) -> str:
        return "1"

    def start(self, props: Mapping[str, str]) -> None:
        self.topic = props["topic"]
        self.sent = False

    def stop(self) -> None:
        """Nothing was opened."""

    def poll(self) -> Sequence[SourceRecord] | None:
        if self.sent:
            self.context.stop_requested.wait(0.05)
            return None
        self.sent = True
        headers = ConnectHeaders()
        headers.add_string("origin", "test")
        return [
            SourceRecord(
                {"p": 1},
                {"o": 1},
                self.topic,
                0,
                STRING_SCHEMA,
                "k",
                STRING_SCHEMA,
                "v",
                timestamp=TIMESTAMP_MS,
                headers=headers,
            )
        ]


class StampedSource(SourceConnector):
    def version(self) -> str:
        return "1"

    def config(self) -> ConfigDef:
        return ConfigDef()

    def start(self, props: Mapping[str, str]) -> None:
        self.props = dict(props)

    def stop(self) -> None:
        """Nothing was opened."""

    def task_class(self) -> type[StampedTask]:
        return StampedTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [self.props]
