"""Specs: an error names the place in the document."""

from pathlib import Path

import pytest
import yaml

from pyconnect_reconcile.data_sides import FileSide
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import ColumnRule, Registry, TopicSide, read_spec

MAIN = {"main": {"bootstrap": "b:9092"}}
BASE = {"version": 1, "job": "duplicates", "clusters": MAIN, "topics": ["t"]}


def test_a_small_spec_has_sound_defaults() -> None:
    """By default a run reads committed records, appends, and shows keys."""
    spec = read_spec(BASE)
    assert (spec.isolation, spec.mode, spec.identity) == ("read_committed", "append", "record")
    assert spec.findings == 1000
    assert not spec.hide_keys


def test_an_unknown_member_is_refused_with_the_near_one() -> None:
    """An unknown member is an error with a similar name, because a typo may change a run."""
    with pytest.raises(ReconcileError, match="spec: `identiy` is not a known member") as caught:
        read_spec({**BASE, "identiy": "key"})
    assert caught.value.hint == "did you mean `identity`?"
    with pytest.raises(ReconcileError, match=r"spec\.left: `path`"):
        read_spec(
            {
                "job": "source-topic",
                "clusters": MAIN,
                "left": {"kind": "files", "paths": ["a"], "format": "text", "path": "b"},
                "right": {"kind": "topic", "topics": ["t"]},
            }
        )


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"job": "everything"}, "`job` is not one of"),
        ({"version": 2}, "version 2 is not supported"),
        ({"topics": []}, "duplicates needs topics"),
        ({"clusters": {}}, "no cluster `main`"),
        ({"job": "sequence"}, "sequence needs sequence"),
        ({"job": "topic-sink"}, "topic-sink needs left, right"),
        ({"job": "completeness"}, "two or more"),
        ({"findings": "many"}, "`findings` is not a number"),
        ({"findings": 0}, "`findings` is 0"),
        ({"hide_keys": 1}, "`hide_keys` is not true or false"),
        ({"since": {"t": "x"}}, "`since` is not topic"),
        ({"spark": {"master": "a", "remote": "b"}}, "exclude each other"),
    ],
)
def test_a_wrong_member_is_named(members: dict[str, object], message: str) -> None:
    """Each error names the member and its valid form."""
    with pytest.raises(ReconcileError, match=message):
        read_spec({**BASE, **members})


def test_sides_and_columns_are_read() -> None:
    """A column `name:type` is the short form of a column."""
    spec = read_spec(
        {
            "job": "topic-sink",
            "clusters": MAIN,
            "left": {"kind": "topic", "topics": ["t"], "value": "json"},
            "right": {"kind": "files", "paths": "out.csv", "format": "csv"},
            "until": {"t": {"0": 5}},
            "columns": ["id:bigint", {"name": "p", "path": "a.b", "type": "string", "null": "-"}],
        }
    )
    assert spec.left == TopicSide(topics=("t",), value="json")
    assert spec.right == FileSide(paths=("out.csv",), format="csv")
    assert spec.until == {"t": {0: 5}}
    assert spec.columns == (
        ColumnRule(name="id", path="id", type="bigint"),
        ColumnRule(name="p", path="a.b", type="string", null="-"),
    )


def test_a_document_that_is_not_a_map_is_refused() -> None:
    """A document that is not a map is an error, because YAML reads any text."""
    with pytest.raises(ReconcileError, match="is not a map"):
        read_spec("duplicates")


def test_the_shipped_example_is_a_spec() -> None:
    """The shipped example is a valid spec."""
    example = Path(__file__).parents[2] / "examples" / "reconcile.yaml"
    spec = read_spec(yaml.safe_load(example.read_text("utf-8")))
    assert spec.job == "topic-sink"


def test_the_order_of_keys_is_asked_of_two_appended_topics_only() -> None:
    """`ordered` needs two topics in append mode, or a sequence, where it is the default."""
    side = {"kind": "topic", "topics": ["t"]}
    base = {"job": "topic-topic", "clusters": MAIN, "left": side, "right": side}
    assert not read_spec(base).ordered
    assert read_spec({**base, "ordered": True}).ordered
    assert read_spec({**BASE, "job": "sequence", "sequence": "key"}).ordered
    files = {"kind": "files", "paths": ["a"], "format": "text"}
    for wrong in ({"mode": "upsert"}, {"right": files}, {"job": "topic-sink"}):
        with pytest.raises(ReconcileError, match="`ordered`"):
            read_spec({**base, "ordered": True, **wrong})


SIDE = {"kind": "topic", "topics": ["t"]}


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"since": {"t": {"0": 5}}}, "t, which is read in 2 clusters"),
        ({"until": {"t": {"0": 5}}}, "t, which is read in 2 clusters"),
        ({"since": {"other": {"0": 5}}}, "names a topic that is not read: other"),
        ({"ranges": "report.json"}, "those of one cluster"),
        ({"ranges": "report.json", "since_ms": 5, "right": SIDE}, "`ranges` excludes"),
        ({"ranges": "report.json", "since": {"t": {"0": 5}}, "right": SIDE}, "`ranges` excludes"),
    ],
)
def test_a_bound_is_one_of_one_topic_or_refused(members: dict[str, object], message: str) -> None:
    """Bounds of a topic in two clusters are refused, and saved ranges exclude other starts."""
    base = {
        "job": "topic-topic", "left": SIDE, "right": {**SIDE, "cluster": "far"},
        "clusters": {**MAIN, "far": {"bootstrap": "c:9092"}},
    }  # fmt: skip
    with pytest.raises(ReconcileError, match=message):
        read_spec({**base, **members})
    read_spec({**base, "since_ms": 5})
    read_spec({**base, "right": SIDE, "ranges": "report.json", "until": {"t": {"0": 5}}})


def test_values_in_protobuf_are_refused() -> None:
    """Values in Protobuf are refused, because they cannot be decoded."""
    side = {"kind": "topic", "topics": ["t"], "value": "protobuf"}
    with pytest.raises(ReconcileError, match="Protobuf cannot be decoded") as caught:
        read_spec({"job": "topic-topic", "clusters": MAIN, "left": side, "right": side})
    assert "--value bytes" in str(caught.value.hint)


def test_registries_are_named_by_cluster() -> None:
    """A spec names registries by cluster, and files with access to them."""
    spec = read_spec({**BASE, "registries": {"main": {"url": "http://r", "properties": "p"}}})
    assert spec.registries == {"main": Registry(url="http://r", properties="p")}
