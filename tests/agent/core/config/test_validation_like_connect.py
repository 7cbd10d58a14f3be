"""Validation compared, key by key, with the answers of Connect 4.3.1 to the same configurations."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyconnect_agent.core.config.plugin_source import PluginClass
from pyconnect_agent.core.config.validation import validate_connector_config
from pyconnect_agent.core.plugin_catalog import Catalog, PluginDesc, PluginKind
from pyconnect_agent.plugins.class_source import CatalogPluginSource
from pyconnect_agent.plugins.loading import builtin_plugins
from tests.agent.plugins.plugin_table import HoistField, InsertHeader, TopicNameMatches
from tests.support.agents.worker_properties import distributed

GOLDEN = json.loads(
    (Path(__file__).parent / "connect_4_3_1_validation.json").read_text(encoding="utf-8")
)
OWN_KEYS = {"on.truncate"}
OTHER_TEXT = {"sink_bad_regex", "transform_predicate", "batch_bad"}
"""Cases with other texts: regular expressions are Python's, and `batch.size` must be positive."""

TRANSFORMS = "org.apache.kafka.connect.transforms"
DOUBLES: Mapping[str, tuple[PluginKind, type]] = {
    f"{TRANSFORMS}.HoistField$Value": (PluginKind.TRANSFORMATION, HoistField),
    f"{TRANSFORMS}.InsertHeader": (PluginKind.TRANSFORMATION, InsertHeader),
    f"{TRANSFORMS}.predicates.TopicNameMatches": (PluginKind.PREDICATE, TopicNameMatches),
}


class _Plugins(CatalogPluginSource):
    """The built-in plugins as of 4.3.1, with doubles for the transformations of the fixture."""

    def __init__(self) -> None:
        listed = [replace(plugin, version="4.3.1") for plugin in builtin_plugins()]
        names = {plugin.class_name for plugin in listed}
        doubles = [
            PluginDesc(class_name=name, python_path=f"table:{name}", kind=kind, version="4.3.1")
            for name, (kind, _) in DOUBLES.items()
            if name not in names
        ]
        super().__init__(Catalog((*listed, *doubles)))

    def find(self, name: str) -> PluginClass:
        found = self.catalog.find(name)
        if found and found[0].class_name in DOUBLES:
            desc = found[0]
            return PluginClass(desc.class_name, DOUBLES[desc.class_name][1], desc.version)
        return super().find(name)


def _key(info: Mapping[str, Any]) -> str:
    return str((info["definition"] or info["value"])["name"])


def _comparable(info: Mapping[str, Any], case: str) -> dict[str, Any]:
    definition, value = info["definition"], dict(info["value"])
    if definition is not None:
        definition = {name: text for name, text in definition.items() if name != "documentation"}
    # The number of recommended plugins depends on the installation.
    value["recommended_values"] = bool(value["recommended_values"])
    if _key(info).endswith(".type"):
        value["recommended_values"] = True
    if case in OTHER_TEXT:
        value["errors"] = bool(value["errors"])
    return {"definition": definition, "value": value}


def _in_hash_order(info: Mapping[str, Any]) -> bool:
    """Return whether Java keeps the key in a hash map: client overrides and converter options."""
    return "converter." in _key(info) or ".override." in _key(info)


def _ordered(infos: list[dict[str, Any]], case: str) -> list[dict[str, Any]]:
    return [_comparable(info, case) for info in infos if not _in_hash_order(info)]


def _unordered(infos: list[dict[str, Any]], case: str) -> list[dict[str, Any]]:
    found = [_comparable(info, case) for info in infos if _in_hash_order(info)]
    return sorted(found, key=str)


@pytest.mark.parametrize("case", sorted(GOLDEN["cases"]))
def test_validation_answers_as_connect_does(case: str) -> None:
    """Keys, order, values, errors, counts and groups are those of Connect 4.3.1."""
    expected = GOLDEN["cases"][case]
    infos: dict[str, Any] = validate_connector_config(
        expected["config"], plugins=_Plugins(), worker=distributed()
    ).to_json()
    ours = [info for info in infos["configs"] if _key(info) not in OWN_KEYS]
    theirs = [GOLDEN["rows"][row] for row in expected["rows"]]
    assert _ordered(ours, case) == _ordered(theirs, case)
    assert _unordered(ours, case) == _unordered(theirs, case)
    assert infos["name"] == expected["name"]
    assert sorted(infos["groups"]) == sorted(expected["groups"])
    if case != "batch_bad":
        assert infos["error_count"] == expected["error_count"]
