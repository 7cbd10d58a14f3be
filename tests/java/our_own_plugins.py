"""Plugins that an agent has and a bare Java worker lacks; see docs/reference/compatibility.md."""

import re

OUR_OWN_PLUGINS = re.compile(
    r"io\.confluent\.connect\..*|org\.apache\.kafka\.connect\.(tools|integration)\..*"
    r"|pyconnect_(connectors|testkit|agent\.builtin\.expressions)\..*"
)
"""Confluent's converters, test connectors, the generator, expressions, connectors of extras."""


def is_our_own(class_name: object) -> bool:
    """Whether a Java worker out of Apache's archive does not have this class."""
    return OUR_OWN_PLUGINS.fullmatch(str(class_name)) is not None
