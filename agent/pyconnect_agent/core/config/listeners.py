"""Addresses of the REST server, and the address that other workers use.

Layer: core. Corresponds to ``RestServerConfig`` and ``RestServer.advertisedUrl`` of Kafka Connect;
error texts are theirs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyconnect_api.config_validators import LambdaValidator
from pyconnect_api.errors import ConfigException

_LISTENER = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)", re.DOTALL)
_EXAMPLE = "http://localhost:8080,https://localhost:8443"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """An address to listen on: protocol ``http`` or ``https``; an empty host is every interface.

    Port 0 asks for any free port.
    """

    protocol: str
    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Listener:
        """Return the listener of ``protocol://host:port``; raises ConfigException."""
        found = _LISTENER.fullmatch(text)
        if not found:
            raise ConfigException(
                "Listener doesn't have the right format (protocol://hostname:port)."
            )
        protocol = found[1].lower()
        if protocol not in ("http", "https"):
            raise ConfigException('Listener protocol must be either "http" or "https".')
        return cls(protocol=protocol, host=found[2], port=int(found[3]))

    @property
    def netloc(self) -> str:
        """``host:port`` as it stands in a URL."""
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def valid_listeners(key: str, *, optional: bool = False) -> LambdaValidator:
    """Return the validator of a list of URLs; ``optional``: it may be unset or empty as well."""

    def check(_name: str, value: object) -> None:
        if optional and not value:
            return
        if not isinstance(value, Sequence) or not value:
            raise ConfigException(
                f"Invalid value for {key}, at least one URL is expected, ex: {_EXAMPLE}."
            )
        if any(not str(item).strip() for item in value):
            raise ConfigException(f"Empty URL found when parsing {key} list.")

    return LambdaValidator(check, f"List of comma-separated URLs, ex: {_EXAMPLE}.")


def advertised_url(
    listeners: Sequence[Listener],
    *,
    default_host: str,
    host_name: str | None = None,
    port: int | None = None,
    protocol: str | None = None,
) -> str:
    """Return the URL other workers reach this one at, with a trailing slash.

    ``listeners`` are those really bound, without port 0. ``host_name``, ``port`` and ``protocol``
    are the values of ``rest.advertised.host.name``, ``.port`` and ``.listener``; ``default_host``
    stands in for a listener on every interface.
    """
    chosen = protocol.lower() if protocol else _default_protocol(listeners)
    listener = next((item for item in listeners if item.protocol == chosen), None)
    if listener is None:
        raise ConfigException(
            f"No listener has the advertised protocol {chosen}: add one to listeners, "
            "or change rest.advertised.listener."
        )
    advertised = Listener(
        protocol=chosen,
        host=host_name or listener.host or default_host,
        port=listener.port if port is None else port,
    )
    return f"{chosen}://{advertised.netloc}/"


def _default_protocol(listeners: Sequence[Listener]) -> str:
    protocols = {listener.protocol for listener in listeners}
    return "https" if protocols == {"https"} else "http"
