"""Keys of a configuration as one text: a line for a key, then its documentation, indented.

Layer: api. The columns of a line are name, type, importance and default; the default goes to the
end of the line. Of defaults, ``!`` is none (the key must be set), ``~`` null and ``""`` empty.
A line ``[group, order in the group, width] display name`` may stand before the documentation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from pyconnect_api.config_key import NO_DEFAULT, ConfigKey, Importance, Width
from pyconnect_api.config_types import ConfigType
from pyconnect_api.config_validators import Validator
from pyconnect_api.configdef import ConfigDef

_DEFAULTS = {"!": NO_DEFAULT, "~": None, '""': ""}
_DISPLAY = re.compile(r"\[(.+), (\d+), (\w+)\] (.+)")


def default_in_table(text: str) -> object:
    """Return the default of a key; another text than the three is parsed as the key's type."""
    return _DEFAULTS.get(text, text)


def define_table(
    definition: ConfigDef, table: str, validators: Mapping[str, Validator] | None = None
) -> ConfigDef:
    """Add the keys of a table, with validators by name, and return the definition."""
    unused = dict(validators or {})
    for entry in re.split(r"\n(?! )", table.strip()):
        head, *lines = map(str.strip, entry.splitlines())
        name, type_name, importance, default = head.split(maxsplit=3)
        display = _DISPLAY.fullmatch(lines[0]) if lines else None
        key = ConfigKey(
            name=name,
            type=ConfigType[type_name],
            importance=Importance[importance],
            default=default_in_table(default),
            validator=unused.pop(name, None),
            documentation=" ".join(lines[1:] if display else lines),
        )
        if display:
            group, order, width, title = display.groups()
            key = replace(
                key,
                group=group,
                order_in_group=int(order),
                width=Width[width],
                display_name=title,
            )
        definition.define_key(key)
    if unused:
        raise ValueError(f"The table has no key {', '.join(unused)}")
    return definition
