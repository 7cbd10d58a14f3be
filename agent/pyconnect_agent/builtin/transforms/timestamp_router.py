"""`org.apache.kafka.connect.transforms.TimestampRouter`: topics named by time.

Layer: builtin. Unlike Kafka's, a wrong pattern is refused as configuration, and the error for a
record without a timestamp does not show the record's data.
"""

from __future__ import annotations

from pyconnect_agent.builtin.options import Options
from pyconnect_agent.builtin.transforms.base import ShippedTransformation, rerouted
from pyconnect_agent.builtin.transforms.definitions import VALID_DATE_PATTERN
from pyconnect_agent.builtin.transforms.java_date_format import JavaDateFormat
from pyconnect_api import (
    ConfigDef,
    ConnectRecord,
    DataException,
    SinkRecord,
)
from pyconnect_api.key_table import define_table

TOPIC_FORMAT = "topic.format"
TIMESTAMP_FORMAT = "timestamp.format"


_TABLE = """
topic.format  STRING  HIGH  ${topic}-${timestamp}
    The new topic; ${topic} stands for the record's topic, ${timestamp} for its timestamp.
timestamp.format  STRING  HIGH  yyyyMMdd
    Pattern of java.text.SimpleDateFormat for the timestamp.
"""


class TimestampRouter(ShippedTransformation):
    """Puts topic and timestamp, in UTC, into the format of the new topic."""

    CONFIG_DEF = define_table(ConfigDef(), _TABLE, {TIMESTAMP_FORMAT: VALID_DATE_PATTERN})

    _topic_format: str
    _date_format: JavaDateFormat

    def _configured(self, options: Options) -> None:
        self._topic_format = options.text(TOPIC_FORMAT)
        self._date_format = JavaDateFormat(options.text(TIMESTAMP_FORMAT))

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        if record.timestamp is None:
            raise DataException(f"Timestamp missing on record: {_place(record)}")
        timestamp = self._date_format.text(record.timestamp)
        topic = self._topic_format.replace("${topic}", record.topic or "")
        return rerouted(record, topic.replace("${timestamp}", timestamp))


def _place(record: ConnectRecord) -> str:
    """Return where a record is, without its data."""
    place = f"topic='{record.topic}', kafkaPartition={record.kafka_partition}"
    if isinstance(record, SinkRecord):
        place += f", kafkaOffset={record.kafka_offset}"
    return f"{type(record).__qualname__}{{{place}}}"
