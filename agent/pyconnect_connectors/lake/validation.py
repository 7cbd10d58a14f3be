"""Validation of a connector's config: settings that fit each other, and storage that answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar
from urllib.parse import quote

from pyconnect_api import Config, ConfigDef, ConfigException, ConnectException
from pyconnect_connectors.lake.names import (
    CATALOG_URI,
    URL,
)
from pyconnect_connectors.lake.partitioners import path_template
from pyconnect_connectors.lake.settings import SinkSettings, SourceSettings
from pyconnect_connectors.lake.storage import HIDDEN_DIR, Storage

Settings = TypeVar("Settings", SinkSettings, SourceSettings)


def validated(
    definition: ConfigDef,
    props: Mapping[str, str | None],
    parse: Callable[[Mapping[str, object]], Settings],
    check: Callable[[Settings], None],
) -> Config:
    """Return the values with all errors; reaches the lake when there is no other error."""
    values = definition.validate_all(props)
    config = Config(config_values=list(values.values()))
    if any(value.error_messages for value in values.values()):
        return config
    place = values[URL]
    try:
        settings = parse(props)
        if isinstance(settings, SinkSettings) and settings.tables is not None:
            place = values[CATALOG_URI]
        check(settings)
    except ConfigException as error:
        key, _, broken = str(error).partition(": ")
        if key in values:
            values[key].add_error_message(broken)
        else:
            place.add_error_message(str(error))
    except ConnectException as error:
        place.add_error_message(str(error))
    return config


def check_sink(settings: SinkSettings) -> None:
    """Reach the sink's target; ConfigException or ConnectException if that fails."""
    path_template(settings.files.path_format)
    if settings.tables is not None:
        from pyconnect_connectors.lake.catalogs import check_catalog

        check_catalog(settings.tables)
        return
    storage = Storage.open(settings.location, writes=True)
    probe = "/".join(
        filter(
            None,
            (settings.files.topics_dir, HIDDEN_DIR, quote(settings.name, safe=" "), "probe"),
        )
    )
    storage.replace(probe, b"")
    if settings.exactly_once and storage.create(probe, b""):
        raise ConnectException(
            "The storage overwrites a file although it was asked not to: conditional writes "
            "(If-None-Match) are missing. Use delivery.guarantee=at-least-once"
        )


def check_source(settings: SourceSettings) -> None:
    """Reach the files; ConnectException if that fails."""
    Storage.open(settings.location, writes=False).check()
