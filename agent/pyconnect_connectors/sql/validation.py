"""Validation of a connector's config: settings that fit each other, and the database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from pyconnect_api import Config, ConfigDef, ConfigException, ConnectException
from pyconnect_connectors.sql.database import connection_problem
from pyconnect_connectors.sql.definitions import URL
from pyconnect_connectors.sql.settings import SinkSettings, SourceSettings

Settings = TypeVar("Settings", SinkSettings, SourceSettings)


def validated(
    definition: ConfigDef,
    props: Mapping[str, str | None],
    parse: Callable[[Mapping[str, object]], Settings],
    problems: Callable[[Settings], Iterable[tuple[str, str]]],
) -> Config:
    """Return the values with all errors; connects once when there is no other error.

    `problems` looks at the database and returns pairs of a setting and a text.
    """
    values = definition.validate_all(props)
    config = Config(config_values=list(values.values()))
    if any(value.error_messages for value in values.values()):
        return config
    try:
        settings = parse(props)
    except ConfigException as error:
        key, _, broken = str(error).partition(": ")
        values.get(key, values[URL]).add_error_message(broken or str(error))
        return config
    writes = isinstance(settings, SinkSettings)
    problem = connection_problem(settings.connection, writes=writes)
    if problem is not None:
        values[URL].add_error_message(problem)
        return config
    try:
        for key, text in problems(settings):
            values[key].add_error_message(text)
    except ConnectException as error:
        values[URL].add_error_message(str(error))
    return config
