"""Definitions of Java plugins, as a Java process describes them."""

from pyconnect_agent.plugins.class_source import definition_of


def test_what_a_java_key_leaves_out_stays_out() -> None:
    """Debezium's MongoDB connector has keys without a display name; Java shows them as null."""
    described = {
        "name": "k", "type": "STRING", "required": False, "default": None, "validated": False,
        "importance": "LOW", "documentation": None, "group": None, "order": -1, "width": "NONE",
        "display": None, "dependents": [], "recommended": False, "internal": False,
    }  # fmt: skip
    definition = definition_of([described], lambda method, **arguments: None)
    [key] = definition.keys.values()
    shown = key.to_json()
    assert (shown["display_name"], shown["documentation"]) == (None, None)
