"""Replaces key stores among librdkafka's properties by their content.

Layer: kafka. `core/clients/librdkafka.py` leaves them under Java's names, because core reads no
files, and librdkafka reads PEM only. Runs once for each client, at its construction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyconnect_clients.key_stores import with_pem
from pyconnect_clients.librdkafka import tls_settings
from pyconnect_clients.security import KEY_STORE, TRUST_STORE, StoreFile, Tls

_NAMES = ("location", "type", "password")


def with_key_stores(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return librdkafka's properties with PEM texts; raises ClientPropertyError."""
    trust, identity = _store(config, TRUST_STORE), _store(config, KEY_STORE)
    if trust is None and identity is None:
        return dict(config)
    read = {f"{store}.{name}" for store in (TRUST_STORE, KEY_STORE) for name in _NAMES}
    if identity is not None:
        read.add("ssl.key.password")
    others = {name: value for name, value in config.items() if name not in read}
    tls = Tls(trust=trust, identity=identity, key_password=config.get("ssl.key.password"))
    return {**tls_settings(with_pem(tls)), **others}


def _store(config: Mapping[str, Any], store: str) -> StoreFile | None:
    location = config.get(f"{store}.location")
    if location is None:
        return None
    return StoreFile(
        store=store,
        location=location,
        type=config.get(f"{store}.type"),
        password=config.get(f"{store}.password"),
    )
