"""Keys of a configuration as one text: a line for a key, then its documentation, indented.

Layer: api. The columns of a line are name, type, importance and default; the default goes to the
end of the line. Of defaults, ``!`` is none (the key must be set), ``~`` null and ``""`` empty.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyconnect_api.config_key import NO_DEFAULT, ConfigKey, Importance
from pyconnect_api.config_types import ConfigType
from pyconnect_api.config_validators import Validator
from pyconnect_api.configdef import ConfigDef

_DEFAULTS = {"!": NO_DEFAULT, "~": None, '""': ""}


def default_in_table(text: str) -> object:
    """Return the default of a key; another text than the three is parsed as the key's type."""
    return _DEFAULTS.get(text, text)


def define_table(
    definition: ConfigDef, table: str, validators: Mapping[str, Validator] | None = None
) -> ConfigDef:
    """Add the keys of a table, with validators by name, and return the definition."""
    unused = dict(validators or {})
    for entry in re.split(r"\n(?! )", table.strip()):
        head, *documentation = entry.splitlines()
        name, type_name, importance, default = head.split(maxsplit=3)
        definition.define_key(
            ConfigKey(
                name=name,
                type=ConfigType[type_name],
                importance=Importance[importance],
                default=default_in_table(default),
                validator=unused.pop(name, None),
                documentation=" ".join(map(str.strip, documentation)),
            )
        )
    if unused:
        raise ValueError(f"The table has no key {', '.join(unused)}")
    return definition
