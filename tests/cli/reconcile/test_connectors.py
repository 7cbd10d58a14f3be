"""The topics of a connector, from its configuration."""

from pyconnect_cli.reconcile.connectors import sink_topics


def test_a_pattern_names_topics_without_a_committed_offset() -> None:
    """Records of a topic that the sink has never read are not left out of an audit."""
    committed = {"orders-1": {0: 5}, "gone": {0: 1}}
    existing = ["orders-1", "orders-2", "others"]
    pattern = {"topics.regex": "orders-.*"}
    assert sink_topics(pattern, committed, lambda: existing) == ["orders-1", "orders-2"]
    expected = ["gone", "orders-1"]
    assert sink_topics({"topics.regex": "orders-("}, committed, lambda: existing) == expected
    assert sink_topics({"topics": "b, a"}, committed, lambda: existing) == ["b", "a"]
