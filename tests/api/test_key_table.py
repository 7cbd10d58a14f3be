"""The text form of a definition."""

import pytest

from pyconnect_api import ConfigDef, ConfigException, ConfigType, Range, Width
from pyconnect_api.configdef import define_table

_TABLE = """
topic  STRING  HIGH  !
    Topic of the rows,
    which must be set.
user  STRING  LOW  ~
prefix  STRING  LOW  ""
options  STRING  LOW  -a -b
rows  INT  MEDIUM  10
"""


def test_lines_are_keys_with_defaults_documentation_and_forms() -> None:
    """Documentation has any number of lines; defaults and groups may have spaces."""
    keys = define_table(ConfigDef(), _TABLE).keys
    assert list(keys) == ["topic", "user", "prefix", "options", "rows"]
    assert keys["topic"].documentation == "Topic of the rows, which must be set."
    assert (keys["user"].documentation, keys["rows"].type) == ("", ConfigType.INT)
    keys = define_table(ConfigDef(), _TABLE).keys
    assert not keys["topic"].has_default
    defaults = [key.default for key in keys.values()][1:]
    assert defaults == [None, "", "-a -b", 10]
    table = "a  INT  LOW  1\n    [Error Handling, 3, SHORT] A title\n    What it is."
    key = define_table(ConfigDef(), table).keys["a"]
    shown = (key.group, key.order_in_group, key.width, key.display_name, key.documentation)
    assert shown == ("Error Handling", 3, Width.SHORT, "A title", "What it is.")


def test_validators_are_given_by_name() -> None:
    """A mistyped one is refused: it would check nothing."""
    definition = define_table(ConfigDef(), _TABLE, {"rows": Range.at_least(1)})
    with pytest.raises(ConfigException, match="rows"):
        definition.parse({"topic": "t", "rows": "0"})
    with pytest.raises(ValueError, match="row"):
        define_table(ConfigDef(), _TABLE, {"row": Range.at_least(1)})
