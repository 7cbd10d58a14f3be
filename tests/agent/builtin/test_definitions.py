"""Settings of every plugin that ships with the agent."""

import pytest

from pyconnect_agent.core.config.plugin_source import class_resolver
from pyconnect_agent.plugins.class_source import CatalogPluginSource
from pyconnect_agent.plugins.scan import installed_catalog
from pyconnect_api import ConfigDef

PLUGINS = CatalogPluginSource(installed_catalog())
NAMES = sorted({plugin.class_name for plugin in PLUGINS.catalog.listed(connectors_only=False)})
STRANGE = (
    None, "", " ", ",", "a,,b", "a:b:c", "-1", "1e3", "null", "\ud800", "\x00", "(", "$1", "`a",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_no_value_of_a_setting_breaks_its_validation(name: str) -> None:
    """Validation never raises: it reports each fault at its setting."""
    definition = PLUGINS.find(name).python_class().config()
    assert isinstance(definition, ConfigDef)
    resolver = class_resolver(PLUGINS)
    for key in definition.keys:
        for value in STRANGE:
            found = {it.name: it for it in definition.validate({key: value}, resolver)}
            assert key in found
