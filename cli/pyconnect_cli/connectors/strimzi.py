"""Strimzi's KafkaConnector documents as connector descriptions. Pure.

A description has the name, `class`, `tasksMax`, `version`, `config` and the initial `state` (or
`pause`) of the document. Labels and the settings of Strimzi's operator (`autoRestart`,
`listOffsets`, `alterOffsets`) have no meaning here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyconnect_cli.errors import UsageError

KIND = "KafkaConnector"
SPEC = frozenset({"class", "tasksMax", "version", "config", "state", "pause"})
OF_THE_OPERATOR = frozenset({"autoRestart", "listOffsets", "alterOffsets"})
SETTINGS = {
    "class": "connector.class",
    "tasksMax": "tasks.max",
    "version": "connector.plugin.version",
}


def is_resource(document: object) -> bool:
    return isinstance(document, Mapping) and {"apiVersion", "kind"} <= set(document)


def resources(document: object) -> Iterator[object]:
    """Yield a document, or the documents in a list of kubectl."""
    if is_resource(document) and isinstance(document, Mapping):
        items = document.get("items")
        if str(document["kind"]).endswith("List") and isinstance(items, list):
            yield from items
            return
    yield document


def connector_body(document: Mapping[object, object], place: str) -> dict[str, object]:
    """Return a KafkaConnector as the body of `POST /connectors`; UsageError for another kind."""
    kind = document["kind"]
    if kind != KIND:
        raise UsageError(
            f"{place}: is a {kind}, not a {KIND}", hint=f"leave only {KIND} documents in the file"
        )
    metadata, spec = document.get("metadata"), document.get("spec")
    if not (isinstance(metadata, Mapping) and metadata.get("name") and isinstance(spec, Mapping)):
        raise UsageError(f"{place}: a {KIND} needs metadata.name and spec")
    if unknown := sorted({*map(str, spec)} - SPEC - OF_THE_OPERATOR):
        raise UsageError(f"{place}: unknown member spec.{', spec.'.join(unknown)}")
    config = spec.get("config") or {}
    if not isinstance(config, Mapping):
        raise UsageError(f"{place}: spec.config must be a map")
    named = {key: spec[member] for member, key in SETTINGS.items() if member in spec}
    if twice := sorted({*map(str, config)} & {*named}):
        raise UsageError(f"{place}: {', '.join(twice)} is set in spec and in spec.config")
    state = spec.get("state") or ("paused" if spec.get("pause") is True else None)
    return {
        "name": metadata["name"],
        "config": {**named, **config},
        **({} if state is None else {"initial_state": state}),
    }
