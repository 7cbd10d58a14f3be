"""Settings of a config that its connector does not define: a worker ignores them silently."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pyconnect_cli.connectors.plan import Config
from pyconnect_cli.errors import PyconnectError
from pyconnect_cli.parsing.near_names import near_names
from pyconnect_cli.rest.model import Validation
from pyconnect_cli.session import Session

PASSED_ON = (
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "producer.override.",
    "consumer.override.",
    "admin.override.",
)
"""Settings of other classes; a validation lists them only in part, or not at all."""
OF_JAVA_PROCESSES = frozenset({"agent.java.heap", "agent.java.options"})
"""Settings of an agent for Java connectors, which validations do not list."""


def unknown_settings(keys: Iterable[str], defined: Collection[str]) -> dict[str, str | None]:
    """Return the keys that are not defined, each with the most similar defined key, or None."""
    if not defined:
        return {}
    unknown = sorted({*keys} - {*defined, "name"} - OF_JAVA_PROCESSES)
    return {
        key: next(iter(near_names(key, defined, limit=1)), None)
        for key in unknown
        if not key.startswith(PASSED_ON)
    }


def warn_of_unknown(session: Session, name: str, answer: Validation, keys: Iterable[str]) -> None:
    """Warn of those of the `keys` that a validation did not know."""
    shown = [
        f"{key} (did you mean {meant}?)" if meant else key
        for key, meant in unknown_settings(keys, answer.defined).items()
    ]
    if shown:
        session.output.warning(f"{name}: its connector does not define {', '.join(shown)}")


def check_settings(
    session: Session, name: str, config: Config, keys: Iterable[str] | None = None
) -> None:
    """Ask a worker for the settings of the config's class, and warn; the change reports errors."""
    plugin = config.get("connector.class")
    if not plugin:
        return
    try:
        answer = session.client.validate(plugin, {"name": name, **config})
    except PyconnectError:
        return
    warn_of_unknown(session, name, answer, config if keys is None else keys)
