"""Groups of topics a source connector has created (KIP-158)."""

import pytest

from pyconnect_agent.core.config.topic_creation import topic_creation_groups
from pyconnect_api import ConfigException
from tests.support.cases import cases

DEFAULT = {
    "topic.creation.default.partitions": "2",
    "topic.creation.default.replication.factor": "-1",
}


def test_settings_make_the_default_group_required() -> None:
    """Without any, creation is left to the broker; its own patterns are ignored."""
    assert topic_creation_groups({"name": "c"}) == ()
    (default,) = topic_creation_groups(DEFAULT | {"topic.creation.default.include": "("})
    assert default.matches("anything")
    with pytest.raises(ConfigException, match=r"topic\.creation\.default\.replication\.factor"):
        topic_creation_groups({"topic.creation.groups": "g"})


def test_groups_come_in_order_and_default_last() -> None:
    """`default` need not be listed, and fills in what others leave out."""
    groups = topic_creation_groups(
        DEFAULT
        | {
            "topic.creation.groups": "compacted, default, big",
            "topic.creation.compacted.include": "c-.*, d",
            "topic.creation.compacted.exclude": "c-x",
            "topic.creation.compacted.cleanup.policy": "compact",
            "topic.creation.big.include": "b.*",
            "topic.creation.big.partitions": "50",
        }
    )
    assert [group.name for group in groups] == ["compacted", "big", "default"]
    compacted, big, default = groups
    assert (compacted.partitions, compacted.replication_factor) == (2, -1)
    assert compacted.other_configs == {"cleanup.policy": "compact"}
    assert (big.partitions, default.partitions) == (50, 2)


@cases("topic, group", ("c-1", "g"), ("c-x", "default"), ("xc-1", "default"), ("d", "g"))
def test_names_match_as_a_whole_and_exclusion_wins(topic: str, group: str) -> None:
    """The first matching group is used."""
    groups = topic_creation_groups(
        DEFAULT
        | {
            "topic.creation.groups": "g",
            "topic.creation.g.include": "c-.*,d",
            "topic.creation.g.exclude": "c-x",
        }
    )
    assert next(item.name for item in groups if item.matches(topic)) == group


@cases(
    "changes, message",
    (
        {"topic.creation.default.partitions": "0"},
        "Number of partitions must be positive, or -1 to use the broker's default",
    ),
    ({"topic.creation.groups": "g", "topic.creation.g.include": "("}, "Syntax error in regular"),
)
def test_wrong_settings_are_refused(changes: dict[str, str], message: str) -> None:
    """The text names the key."""
    with pytest.raises(ConfigException, match=message):
        topic_creation_groups(DEFAULT | changes)


def test_patterns_have_javas_meaning() -> None:
    """Digits are ASCII, flags of one pattern hold for those after it, syntax errors are refused."""
    rules = DEFAULT | {
        "topic.creation.groups": "g",
        "topic.creation.g.include": r"n-\d+,(?i)low,high,\p{Upper}+",
    }
    group = topic_creation_groups(rules)[0]
    assert [name for name in ("n-1", "n-٣", "LOW", "HIGH", "ABC", "n") if group.matches(name)] == [
        "n-1",
        "LOW",
        "HIGH",
        "ABC",
        "n",
    ]
    with pytest.raises(ConfigException, match="Syntax error in regular expression"):
        topic_creation_groups(rules | {"topic.creation.g.include": "(?<n>"})
