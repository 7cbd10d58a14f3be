"""A source of one record with everything a record can carry."""

from collections.abc import Mapping, Sequence

from pyconnect_api import ConnectHeaders, SourceRecord
from pyconnect_api.schema import STRING_SCHEMA
from tests.support.plugins.plain_connectors import PlainSource, PlainSourceTask

STAMPED_SOURCE = f"{__name__}.StampedSource"
TIMESTAMP_MS = 1_234


class StampedTask(PlainSourceTask):
    def start(self, props: Mapping[str, str]) -> None:
        self.topic = props["topic"]
        self.sent = False

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


class StampedSource(PlainSource):
    def task_class(self) -> type[StampedTask]:
        return StampedTask
