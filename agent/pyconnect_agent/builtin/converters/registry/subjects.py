"""Under which subject a schema is registered.

Layer: builtin. Corresponds to Confluent's subject name strategies; class names with or without
package are accepted. Pure.
"""

from __future__ import annotations

from collections.abc import Callable

from pyconnect_api import ConfigException, DataException

SubjectName = Callable[[str, bool, str | None], str]
"""Makes a subject of topic, is_key and the record's full name, None if the schema has none."""


def strategy(name: str) -> SubjectName:
    """Return the strategy of that class name; ConfigException when there is none."""
    found = _STRATEGIES.get(name.rpartition(".")[2])
    if found is None:
        raise ConfigException(
            f"Unknown subject name strategy {name}; there are {', '.join(sorted(_STRATEGIES))}"
        )
    return found


def _topic_name(topic: str, is_key: bool, _record: str | None) -> str:
    return f"{topic}-{'key' if is_key else 'value'}"


def _record_name(topic: str, is_key: bool, record: str | None) -> str:
    if record is None:
        part = "key" if is_key else "value"
        raise DataException(
            f"The subject name strategy needs the name of a record: the {part} of topic {topic} "
            "has no struct schema with a name"
        )
    return record


def _topic_record_name(topic: str, is_key: bool, record: str | None) -> str:
    return f"{topic}-{_record_name(topic, is_key, record)}"


_STRATEGIES: dict[str, SubjectName] = {
    "TopicNameStrategy": _topic_name,
    "RecordNameStrategy": _record_name,
    "TopicRecordNameStrategy": _topic_record_name,
}
