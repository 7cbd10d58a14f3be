"""The records that leaders write into the config topic, and a reducer that reads them."""

from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.internal_topics import LogRecord, config_records
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot
from pyconnect_agent.core.internal_topics.configlog import Applied, ConfigLog


class ConfigTopicFeed:
    """A feed that applies records to a reducer, at successive offsets."""

    def __init__(self) -> None:
        self.log = ConfigLog()
        self.next_offset = 0

    def __call__(self, key: bytes | str | None, value: bytes | str | None) -> Applied:
        raw_key = key.encode() if isinstance(key, str) else key
        raw_value = value.encode() if isinstance(value, str) else value
        applied = self.log.apply(self.next_offset, raw_key, raw_value)
        self.next_offset += 1
        return applied

    def write(self, *records: LogRecord) -> Applied:
        return [self(*record) for record in records][-1]

    def full(self, connector: str, tasks: int, config: dict[str, str] | None = None) -> None:
        self.write(*full_write(connector, tasks, config or {"name": connector}))

    @property
    def state(self) -> ConfigSnapshot:
        return self.log.snapshot()


def full_write(connector: str, tasks: int, config: dict[str, str]) -> list[LogRecord]:
    """Return the records of a leader's write: config, a full task set made from it, commit."""
    return [
        config_records.connector_config(connector, config),
        *(
            config_records.task_config(ConnectorTaskId(connector, n), {**config, "n": str(n)})
            for n in range(tasks)
        ),
        config_records.tasks_commit(connector, tasks),
    ]
