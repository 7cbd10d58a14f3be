"""Names, aliases and versions of plugins."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.core.plugin_catalog import (
    Catalog,
    PluginDesc,
    PluginKind,
    PluginNotFoundError,
    PluginVersionNotFoundError,
    Version,
    VersionRange,
)
from tests.support.cases import cases


def plugin(
    name: str, kind: PluginKind = PluginKind.SOURCE, version: str | None = "1.0"
) -> PluginDesc:
    """Return the description of a class, which need not exist."""
    module, _, simple = name.rpartition(".")
    return PluginDesc(
        class_name=name, python_path=f"py.{module}:{simple}", kind=kind, version=version
    )


CATALOG = Catalog(
    (
        plugin("a.FileStreamSourceConnector", version="1.0"),
        plugin("a.FileStreamSourceConnector", version="1.10"),
        plugin("a.FileStreamSourceConnector", version="1.9"),
        plugin("a.SameConnector", PluginKind.SINK),
        plugin("b.SameConnector", PluginKind.SINK),
        plugin("a.JsonConverter", PluginKind.CONVERTER),
        plugin("a.JsonConverter", PluginKind.HEADER_CONVERTER),
        plugin("t.Cast$Value", PluginKind.TRANSFORMATION),
        plugin("t.Flatten$Value", PluginKind.TRANSFORMATION),
        plugin("p.TopicNameMatches", PluginKind.PREDICATE, None),
    )
)


@cases(
    "name, class_name",
    ("a.FileStreamSourceConnector", "a.FileStreamSourceConnector"),
    ("FileStreamSourceConnector", "a.FileStreamSourceConnector"),
    ("FileStreamSource", "a.FileStreamSourceConnector"),
    ("py.a:FileStreamSourceConnector", "a.FileStreamSourceConnector"),
    ("py.a.FileStreamSourceConnector", "a.FileStreamSourceConnector"),
    ("Json", "a.JsonConverter"),
    ("Cast$Value", "t.Cast$Value"),
    ("TopicNameMatches", "p.TopicNameMatches"),
)
def test_a_plugin_answers_to_its_names(name: str, class_name: str) -> None:
    """A plugin is found by its full name in Java's or Python's form, and by its short names."""
    assert {found.class_name for found in CATALOG.find(name)} == {class_name}


@cases("name", "Value", "Same", "SameConnector", "filestreamsource", "")
def test_ambiguous_and_unknown_names_find_nothing(name: str) -> None:
    """An alias of two classes finds neither."""
    assert CATALOG.find(name) == ()


def test_a_name_that_is_no_one_connectors_is_explained() -> None:
    """The error lists the candidates of an ambiguous alias, or the available connectors."""
    with pytest.raises(PluginNotFoundError) as refused:
        CATALOG.connector("Same")
    assert str(refused.value).startswith(
        "More than one connector matches alias Same. Please use full package and class name "
        "instead. Classes found: PluginDesc{klass=class a.SameConnector"
    )
    with pytest.raises(
        PluginNotFoundError, match=r"which name matches a\.JsonConverter, available"
    ):
        CATALOG.connector("a.JsonConverter")


def test_the_latest_version_is_taken_unless_a_range_says_otherwise() -> None:
    """Versions are compared by number, so that 1.10 is later than 1.9."""
    name = "FileStreamSource"
    assert CATALOG.connector(name).version == "1.10"
    assert CATALOG.connector(name, version_range="[1.0,1.10)").version == "1.9"
    assert CATALOG.connector(name, version_range="1.0").version == "1.0"
    assert CATALOG.versions(name) == ("1.0", "1.9", "1.10")
    with pytest.raises(PluginVersionNotFoundError) as refused:
        CATALOG.connector(name, version_range="2")
    assert str(refused.value) == (
        "Plugin a.FileStreamSourceConnector not found that matches the version range [2,2], "
        "available versions: [1.0, 1.9, 1.10]"
    )


def test_of_two_copies_of_a_java_plugin_the_last_location_counts() -> None:
    """As in Apache's worker, the copy in Kafka's jars wins, then the last location."""
    places = [("classpath", None), ("file:/p/a.jar", "/p/a.jar"), ("file:/p/b.jar", "/p/b.jar")]
    copies = tuple(
        PluginDesc(
            class_name="a.Copied",
            python_path="",
            kind=PluginKind.CONVERTER,
            version="1",
            location=location,
            search_path=path,
            is_java=True,
        )
        for location, path in places
    )
    assert Catalog(copies).plugin("a.Copied").location == "classpath"
    assert Catalog(copies[1:]).plugin("a.Copied").location == "file:/p/b.jar"


def test_plugins_are_listed_by_kind_and_name_and_survive_json() -> None:
    """Sinks come first and header converters last, also after the JSON of another process."""
    listed = [(item.kind.value, item.class_name) for item in CATALOG.listed(connectors_only=False)]
    assert listed[:2] == [("sink", "a.SameConnector"), ("sink", "b.SameConnector")]
    expected = ["transformation", "transformation", "predicate", "converter", "header_converter"]
    assert [kind for kind, _ in listed[5:]] == expected
    assert len(CATALOG.listed(connectors_only=True)) == 5
    for desc in CATALOG.plugins:
        assert PluginDesc.from_json(desc.to_json()) == desc


@cases(
    "lower, higher",
    ("1.9", "1.10"), ("1.0rc1", "1.0"), ("1.0", "1.0.1"), ("4.3.1-SNAPSHOT", "4.3.1"), ("0", "0.1"),
)  # fmt: skip
def test_versions_compare_by_number_and_pre_releases_come_first(lower: str, higher: str) -> None:
    """Numbers decide, and a pre-release is earlier than its release."""
    assert Version(lower) < Version(higher)
    assert not Version(higher) < Version(lower)


def test_trailing_zeros_do_not_matter() -> None:
    """1, 1.0 and 1.0.0 are one version."""
    assert Version("1") == Version("1.0") == Version("1.0.0")
    assert hash(Version("1")) == hash(Version("1.0"))


@given(st.lists(st.integers(0, 99), min_size=1, max_size=4))
def test_a_plain_version_means_exactly_itself(numbers: list[int]) -> None:
    """A plain version is shown as a closed range."""
    text = ".".join(map(str, numbers))
    wanted = VersionRange.parse(text)
    assert wanted.contains(text)
    assert not wanted.contains(f"{text}.1")
    assert str(wanted) == f"[{text},{text}]"


@cases(
    "text, inside, outside",
    ("[4,5)", ["4", "4.9"], ["3.9", "5"]),
    ("(4,5]", ["4.1", "5"], ["4", "5.1"]),
    ("[4.3.1,]", ["4.3.1", "9"], ["4.3"]),
    ("(,4]", ["0", "4"], ["4.0.1"]),
    ("[1,2),[3,4)", ["1", "3.5"], ["2", "4"]),
    ("[4]", ["4.0"], ["4.1"]),
)
def test_ranges_are_read_as_mavens(text: str, inside: list[str], outside: list[str]) -> None:
    """A bracket includes its end, a parenthesis excludes it, an empty end is open."""
    wanted = VersionRange.parse(text)
    assert all(wanted.contains(version) for version in inside)
    assert not any(wanted.contains(version) for version in outside)
    assert str(wanted) == text
