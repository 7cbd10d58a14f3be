"""A worker configuration for tests."""

from pyconnect_agent.core.config.worker_config import DistributedConfig

JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
PROPERTIES = {
    "group.id": "jb",
    "key.converter": JSON_CONVERTER,
    "value.converter": JSON_CONVERTER,
    "config.storage.topic": "configs",
    "offset.storage.topic": "offsets",
    "status.storage.topic": "statuses",
}


def distributed(**changes: str) -> DistributedConfig:
    """Return a distributed worker's configuration; underscores in names stand for dots."""
    changed = {name.replace("_", "."): value for name, value in changes.items()}
    return DistributedConfig.parse(PROPERTIES | changed)
