"""The connector and task of Datagen.

Options are those of Confluent's `DatagenConnector`, and `throughput`, `batch.size`. A record
depends only on seed, task and its number, and offsets keep both: after a restart the sequence goes
on, so exactly-once delivery is supported.
"""

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyconnect_agent.core.plugin_catalog import ApachesPlugin
from pyconnect_api import (
    INT32_SCHEMA,
    INT64_SCHEMA,
    Config,
    ConfigDef,
    ConfigException,
    ConnectHeaders,
    ConnectorTransactionBoundaries,
    ExactlyOnceSupport,
    Range,
    SourceConnector,
    SourceRecord,
    SourceTask,
    ValidString,
)
from pyconnect_api.configdef import define_table
from pyconnect_testkit.datagen.generator import RecordGenerator


def _field(name: str, kind: str, **hints: object) -> dict[str, Any]:
    if not hints:
        return {"name": name, "type": kind}
    return {"name": name, "type": {"type": kind, "arg.properties": hints}}


def _record(name: str, *fields: dict[str, Any]) -> str:
    return json.dumps(
        {"type": "record", "name": name, "namespace": "pyconnect.datagen", "fields": fields}
    )


def _counting(name: str, kind: str = "long", start: int = 0, step: int = 1) -> dict[str, Any]:
    return _field(name, kind, iteration={"start": start, "step": step})


def _times(name: str) -> dict[str, Any]:
    return _counting(name, start=1_700_000_000_000, step=250)


_ADDRESS = {
    "name": "address",
    "type": {
        "type": "record",
        "name": "Address",
        "fields": [
            _field("city", "string", regex="City_[1-9][0-9]?"),
            _field("zipcode", "long", range={"min": 10_000, "max": 100_000}),
        ],
    },
}

TEMPLATES: Mapping[str, tuple[str, str]] = {
    "orders": (
        "orderid",
        _record(
            "Order",
            _times("ordertime"),
            _counting("orderid", "int"),
            _field("itemid", "string", regex="Item_[1-9][0-9]{0,2}"),
            _field("orderunits", "double", range={"min": 0.1, "max": 10.0}),
            _ADDRESS,
        ),
    ),
    "users": (
        "userid",
        _record(
            "User",
            _times("registertime"),
            _field("userid", "string", regex="User_[1-9]"),
            _field("regionid", "string", regex="Region_[1-9]"),
            _field("gender", "string", options=["MALE", "FEMALE", "OTHER"]),
        ),
    ),
    "pageviews": (
        "viewtime",
        _record(
            "PageView",
            _counting("viewtime", start=1, step=10),
            _field("userid", "string", regex="User_[1-9]"),
            _field("pageid", "string", regex="Page_[1-9][0-9]?"),
        ),
    ),
    "clickstream": (
        "ip",
        _record(
            "Click",
            _field("ip", "string", regex="111\\.[0-9]{1,2}\\.[0-9]{1,2}\\.[0-9]{1,2}"),
            _field("userid", "int", range={"min": 1, "max": 40}),
            _times("time"),
            _field("request", "string", regex="GET /(index|images/track|site/login)\\.html HTTP"),
            _field("status", "string", options=["200", "302", "404", "405", "406", "407"]),
            _field("bytes", "string", options=["278", "1289", "2048", "4096", "14096"]),
            _field("agent", "string", options=["Mozilla/5.0", "curl/8.5"]),
        ),
    ),
    "transactions": (
        "transaction_id",
        _record(
            "Transaction",
            _counting("transaction_id", start=1),
            _field("card_id", "long", range={"min": 1, "max": 15}),
            _field("user_id", "string", regex="User_[1-9]?"),
            _field("purchase_id", "long", range={"min": 0, "max": 1_000_000}),
            _field("store_id", "int", range={"min": 1, "max": 7}),
        ),
    ),
}
"""Key field and Avro schema by name."""


TOPIC, TOPIC_ALIAS = "topic", "kafka.topic"
QUICKSTART = "quickstart"
SCHEMA_STRING = "schema.string"
SCHEMA_FILENAME = "schema.filename"
KEY_FIELD = "schema.keyfield"
MAX_INTERVAL = "max.interval"
THROUGHPUT = "throughput"
ITERATIONS = "iterations"
SEED = "random.seed"
BATCH_SIZE = "batch.size"
TASK_ID, GENERATION, ITERATION = "task.id", "task.generation", "current.iteration"

LONGEST_WAIT_S = 1.0


_TABLE = """
topic  STRING  HIGH  ~
    Topic to write to; 'kafka.topic' means the same.
kafka.topic  STRING  HIGH  ~
    Topic to write to; 'topic' means the same.
quickstart  STRING  HIGH  ""
    Name of a schema that ships with the connector.
schema.string  STRING  HIGH  ""
    The schema of values, an Avro record with generator hints.
schema.filename  STRING  HIGH  ""
    File that holds the schema of values.
schema.keyfield  STRING  HIGH  ""
    Field whose value is the key too; empty: as the quickstart says, or none.
max.interval  LONG  MEDIUM  500
    Longest wait between two records, in ms; each waits for a random part of it.
throughput  LONG  MEDIUM  -1
    Records a second of each task in place of random waits; -1: not used.
iterations  LONG  MEDIUM  -1
    Records of each task in all, then it idles; -1: without end.
random.seed  LONG  MEDIUM  ~
    Makes the records the same ones each time; unset: chosen at the first start.
batch.size  INT  MEDIUM  500
    Most records a poll returns.
"""


def config_def() -> ConfigDef:
    """Return the settings; `schema_of` checks which schema is used."""
    return define_table(
        ConfigDef(),
        _TABLE,
        {
            QUICKSTART: ValidString.one_of("", *TEMPLATES),
            MAX_INTERVAL: Range.at_least(0),
            THROUGHPUT: Range.at_least(-1),
            ITERATIONS: Range.at_least(-1),
            BATCH_SIZE: Range.at_least(1),
        },
    )


def topic_of(config: Mapping[str, object]) -> str:
    """Return the topic. Raises ConfigException when none is set."""
    topic = config[TOPIC] or config[TOPIC_ALIAS]
    if not topic:
        raise ConfigException(f'Missing required configuration "{TOPIC}" which has no default')
    return str(topic)


def schema_of(config: Mapping[str, object]) -> tuple[str, str]:
    """Return key field and schema text.

    Raises ConfigException unless exactly one schema is named.
    """
    named = [name for name in (QUICKSTART, SCHEMA_STRING, SCHEMA_FILENAME) if config[name]]
    if len(named) != 1:
        raise ConfigException(
            f"Set exactly one of '{QUICKSTART}', '{SCHEMA_STRING}' and '{SCHEMA_FILENAME}'"
        )
    key_field = str(config[KEY_FIELD])
    if config[QUICKSTART]:
        default_key, text = TEMPLATES[str(config[QUICKSTART])]
        return key_field or default_key, text
    if config[SCHEMA_STRING]:
        return key_field, str(config[SCHEMA_STRING])
    try:
        return key_field, Path(str(config[SCHEMA_FILENAME])).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigException(f"'{SCHEMA_FILENAME}' cannot be read: {error}") from error


class DatagenSourceConnector(ApachesPlugin, SourceConnector):
    """A source with `tasks.max` tasks, each with its own sequence."""

    def start(self, props: Mapping[str, str]) -> None:
        _check(props)
        super().start(props)

    def task_class(self) -> type[SourceTask]:
        return DatagenSourceTask

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [{**self.props, TASK_ID: str(number)} for number in range(max_tasks)]

    def config(self) -> ConfigDef:
        return config_def()

    def validate(self, connector_configs: Mapping[str, str | None]) -> Config:
        """Check the schema and its hints too."""
        config = super().validate(connector_configs)
        if not any(value.error_messages for value in config.config_values):
            try:
                _check(connector_configs)
            except ConfigException as error:
                for value in config.config_values:
                    if value.name == (TOPIC if TOPIC in str(error) else SCHEMA_STRING):
                        value.add_error_message(str(error))
        return config

    def exactly_once_support(
        self, connector_configs: Mapping[str, str | None]
    ) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def can_define_transaction_boundaries(
        self, connector_configs: Mapping[str, str | None]
    ) -> ConnectorTransactionBoundaries:
        return ConnectorTransactionBoundaries.UNSUPPORTED


def _check(props: Mapping[str, str | None]) -> None:
    config = config_def().parse(props)
    topic_of(config)
    key_field, text = schema_of(config)
    generator = RecordGenerator(text)
    if key_field:
        generator.field_schema(key_field)


class DatagenSourceTask(ApachesPlugin, SourceTask):
    """Makes records at the given rate."""

    def start(self, props: Mapping[str, str]) -> None:
        config = config_def().parse(props)
        self._topic = topic_of(config)
        self._key_field, text = schema_of(config)
        self._generator = RecordGenerator(text)
        self._key_schema = (
            self._generator.field_schema(self._key_field) if self._key_field else None
        )
        self._max_interval_s = int(str(config[MAX_INTERVAL])) / 1000
        self._throughput = int(str(config[THROUGHPUT]))
        self._most = int(str(config[ITERATIONS]))
        self._batch_size = int(str(config[BATCH_SIZE]))
        self._task_id = int(props.get(TASK_ID, "0"))
        # Go on where the last committed record left off.
        self._partition = {TASK_ID: self._task_id}
        offset = self.context.offset_storage_reader.offset(self._partition) or {}
        self._iteration = int(str(offset.get(ITERATION, 0)))
        self._generation = int(str(offset.get(GENERATION, -1))) + 1
        seed = offset.get(SEED) if config[SEED] is None else config[SEED]
        self._seed = secrets.randbits(48) if seed is None else int(str(seed))
        self._started = time.monotonic()
        self._sent = 0

    def poll(self) -> Sequence[SourceRecord] | None:
        count = self._due()
        if self._most >= 0:
            count = min(count, self._most - self._iteration)
        if count <= 0:
            is_idle = 0 <= self._most <= self._iteration or self._throughput <= 0
            wait_s = LONGEST_WAIT_S if is_idle else min(LONGEST_WAIT_S, 1 / self._throughput)
            self.context.stop_requested.wait(wait_s)
            return None
        now_ms = int(time.time() * 1000)
        records = [self._record(self._iteration + index, now_ms) for index in range(count)]
        self._iteration += count
        self._sent += count
        return records

    def _due(self) -> int:
        """Return how many records may be sent now."""
        if self._throughput >= 0:
            allowed = int((time.monotonic() - self._started) * self._throughput)
            return min(self._batch_size, allowed - self._sent)
        if self._max_interval_s == 0:
            return self._batch_size
        if self.context.stop_requested.wait(
            secrets.SystemRandom().uniform(0, self._max_interval_s)
        ):
            return 0
        return 1

    def _record(self, number: int, now_ms: int) -> SourceRecord:
        value = self._generator.record(f"{self._seed}/{self._task_id}", number)
        headers = ConnectHeaders()
        headers.add(TASK_ID, self._task_id, INT32_SCHEMA)
        headers.add(GENERATION, self._generation, INT64_SCHEMA)
        headers.add(ITERATION, number, INT64_SCHEMA)
        return SourceRecord(
            self._partition,
            {GENERATION: self._generation, ITERATION: number + 1, SEED: self._seed},
            self._topic,
            key_schema=self._key_schema,
            key=value.get(self._key_field) if self._key_field else None,
            value_schema=value.schema,
            value=value,
            timestamp=now_ms,
            headers=headers,
        )
