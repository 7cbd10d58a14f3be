"""A look at the sink's target, before its config is taken and before its tasks write."""

from __future__ import annotations

from urllib.parse import quote

from pyconnect_api import ConnectException
from pyconnect_connectors.lake.partitioners import path_template
from pyconnect_connectors.lake.settings import SinkSettings
from pyconnect_connectors.lake.storage import HIDDEN_DIR, Storage


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
