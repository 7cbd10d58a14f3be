"""Finding and loading plugins."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pyconnect_agent.core.config.plugin_source import PluginSource
from pyconnect_agent.core.plugin_catalog import CONNECT_VERSION, Catalog, PluginDesc, PluginKind
from pyconnect_agent.plugins.class_source import CatalogPluginSource
from pyconnect_agent.plugins.loading import BASE_CLASSES, builtin_plugins, load
from pyconnect_agent.plugins.scan import (
    directory_entry_points,
    installed_catalog,
    known_class,
    scan,
    scan_directory,
)
from pyconnect_api import ConnectException, SinkConnector, SourceConnector
from pyconnect_clients.installation import version
from tests.agent.plugins.plugin_table import PlainSource, TablePluginSource
from tests.support.cases import cases

CONNECTOR = """
import helper_of_plugin
from tests.agent.plugins.plugin_table import PlainSink, PlainSource

class MySource(PlainSource):
    def version(self):
        return helper_of_plugin.VERSION

class MySink(PlainSink):
    pass
"""


def make_plugin(root: Path, name: str, *, version: str, listed: bool = True) -> Path:
    """Install a plugin with a private dependency into a directory, as pip --target does."""
    directory = root / name
    (directory / "my_plugin").mkdir(parents=True)
    (directory / "my_plugin" / "__init__.py").write_text(CONNECTOR, encoding="utf-8")
    (directory / "helper_of_plugin.py").write_text(f"VERSION = {version!r}\n", encoding="utf-8")
    if listed:
        info = directory / f"my_plugin-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: my_plugin\nVersion: {version}\n", encoding="utf-8"
        )
        (info / "entry_points.txt").write_text(
            "[pyconnect.connectors]\n"
            "com.example.MySourceConnector = my_plugin:MySource\n"
            "MySink = my_plugin:MySink\n"
            "Broken = my_plugin:Missing\n",
            encoding="utf-8",
        )
    return directory


@pytest.mark.parametrize(
    "plugin", builtin_plugins(), ids=lambda p: f"{p.class_name}-{p.kind.value}"
)
def test_every_builtin_plugin_loads_as_its_kind(plugin: PluginDesc) -> None:
    """Each Java name in the table refers to a class of its kind."""
    assert issubclass(load(plugin), BASE_CLASSES[plugin.kind])
    own = plugin.class_name.startswith(("pyconnect_connectors.", "pyconnect_agent."))
    assert plugin.version == (version() if own else CONNECT_VERSION)


@cases(
    "plugin, extra, library",
    ("SqlSink", "sql", "sqlalchemy"),
    ("LakeSink", "lake", "obstore"),
    ("LakeSource", "lake", "pyarrow"),
)
def test_a_connector_without_its_extra_is_listed_and_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, plugin: str, extra: str, library: str
) -> None:
    """The list needs no import, and loading the plugin names the extra to install."""
    package = f"pyconnect_connectors.{extra}"
    for name in [name for name in sys.modules if name.startswith((package, f"{library}."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    (found,) = Catalog(builtin_plugins()).find(plugin)
    text = rf"needs {library}.*install the extra `{extra}`: .+{extra}"
    with pytest.raises(ConnectException, match=text):
        load(found)


def test_metadata_is_found_without_importing_plugins() -> None:
    """The worker process's catalog runs no code of plugins."""
    code = (
        "import sys; from pyconnect_agent.plugins.scan import installed_catalog; "
        "assert installed_catalog().find('FileStreamSource'); "
        "print([name for name in sys.modules if name.startswith('pyconnect_agent.builtin')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.wire
def test_versions_with_contradicting_dependencies_are_scanned_separately(tmp_path: Path) -> None:
    """Each directory is scanned in a process of its own, and failures are reported."""
    make_plugin(tmp_path, "one", version="1.0")
    make_plugin(tmp_path, "two", version="2.0")
    result = scan([str(tmp_path)])
    sources = result.catalog.find("my_plugin.MySource")
    expected = {(PluginKind.SOURCE, "1.0"), (PluginKind.SOURCE, "2.0")}
    assert {(item.kind, item.version) for item in sources} == expected
    assert result.catalog.find("MySink")[0].kind is PluginKind.SINK
    assert len(result.warnings) == 2
    assert all("Missing" in warning for warning in result.warnings)


@pytest.mark.wire
@cases(
    "discovery, found, warned", ("service_load", 0, 0), ("only_scan", 2, 0), ("hybrid_warn", 2, 1)
)
def test_a_scan_finds_the_unlisted(tmp_path: Path, discovery: str, found: int, warned: int) -> None:
    """A scan finds plugins without entry points, unless the mode counts only entry points."""
    make_plugin(tmp_path, "p", version="3.0", listed=False)
    result = scan([str(tmp_path)], discovery)
    names = ("my_plugin.MySource", "my_plugin.MySink")
    assert sum(len(result.catalog.find(name)) for name in names) == found
    assert len(result.warnings) == warned


@pytest.mark.wire
def test_unlisted_plugins_stop_a_worker_that_asks_for_it(tmp_path: Path) -> None:
    """`hybrid_fail` raises an error with the plugins' names and the remedy."""
    make_plugin(tmp_path, "p", version="3.0", listed=False)
    with pytest.raises(ConnectException, match=r"my_plugin\.MySink, my_plugin\.MySource\. Add"):
        scan([str(tmp_path)], "hybrid_fail")


@pytest.mark.wire
@cases(
    "code, reason",
    ("import sys; sys.exit(3)", "its process exited with code 3"),
    ("import os; os._exit(4)", "its process exited with code 4"),
    ("import os; os.abort()", "its process was killed by signal 6 (SIGABRT)"),
    ("raise RuntimeError('no')", "RuntimeError: no"),
)
def test_a_plugin_that_fails_to_import_is_left_out(tmp_path: Path, code: str, reason: str) -> None:
    """The scan reports the reason and finds the other plugins."""
    make_plugin(tmp_path, "good", version="1.0")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "bad_plugin.py").write_text(code, encoding="utf-8")
    result = scan([str(tmp_path)])
    assert result.catalog.find("my_plugin.MySource")
    bad = [text for text in result.warnings if str(tmp_path / "bad") in text or "bad_pl" in text]
    assert any(reason in text for text in bad), result.warnings


def test_entry_points_of_a_directory_are_found_under_both_names(tmp_path: Path) -> None:
    """An entry point is found by its own name, such as a Java class, and by its Python path."""
    assert scan_directory(tmp_path, "hybrid_warn").catalog.plugins == ()
    catalog = Catalog(directory_entry_points(make_plugin(tmp_path, "p", version="2.0")))
    assert catalog.find("com.example.MySourceConnector")[0].python_path == "my_plugin:MySource"
    assert catalog.find("my_plugin.MySource")[0].kind is PluginKind.CONNECTOR


def test_other_objects_are_no_plugins() -> None:
    """A class of another type raises with Connect's text; a path to another object is not found."""
    plugin = PluginDesc(
        class_name="a.B",
        python_path="tests.agent.plugins.plugin_table:PlainSource",
        kind=PluginKind.SINK,
        version=None,
    )
    with pytest.raises(ConnectException, match=r"Class a\.B does not implement the SinkConnector"):
        load(plugin)
    with pytest.raises(LookupError, match="Failed to find any class"):
        CatalogPluginSource(installed_catalog()).connector("collections.OrderedDict")


def test_import_errors_name_the_plugin_and_the_cause() -> None:
    """The error distinguishes a missing dependency from a missing plugin."""
    plugin = PluginDesc(
        class_name="a.B", python_path="no_such_module:B", kind=PluginKind.SINK, version=None
    )
    with pytest.raises(ConnectException, match=r"no_such_module.*ModuleNotFoundError"):
        load(plugin)


TABLE = [(desc.class_name, desc.kind, load(desc)) for desc in installed_catalog().plugins]
SOURCES: list[Callable[[], PluginSource]] = [
    lambda: CatalogPluginSource(installed_catalog()),
    lambda: TablePluginSource(TABLE, CONNECT_VERSION),
]


@pytest.mark.parametrize("make", SOURCES, ids=["catalog", "table"])
class TestPluginSource:
    """The contract of plugin sources, for the real source and the one for tests."""

    def test_connectors_are_found_by_alias(self, make: Callable[[], PluginSource]) -> None:
        """A look-up by alias returns the full name, the class and the version."""
        found = make().connector("FileStreamSource")
        assert found.name == "org.apache.kafka.connect.file.FileStreamSourceConnector"
        assert issubclass(found.python_class, SourceConnector)
        assert found.version == CONNECT_VERSION

    def test_look_ups_fail_as_lookup_errors(self, make: Callable[[], PluginSource]) -> None:
        """Look-ups of all kinds of plugins raise LookupError for an unknown name."""
        source = make()
        with pytest.raises(LookupError, match="Failed to find any class"):
            source.connector("no.such.Class")
        with pytest.raises(LookupError):
            source.find("no.such.Class")
        with pytest.raises(LookupError):
            source.plugin("no.such.Class", PluginKind.CONVERTER)
        with pytest.raises(LookupError, match="matches the version range"):
            source.connector("FileStreamSource", "[9999,)")

    def test_names_are_sorted_and_versions_known(self, make: Callable[[], PluginSource]) -> None:
        """A name is listed once."""
        source = make()
        names = source.class_names(PluginKind.CONVERTER)
        assert list(names) == sorted(set(names))
        assert source.versions(names[0], PluginKind.CONVERTER) == (CONNECT_VERSION,)
        assert source.versions("FileStreamSink", PluginKind.CONNECTOR) == (CONNECT_VERSION,)
        assert source.versions("nothing", PluginKind.CONVERTER) == ()


@cases("separator", ".", ":")
def test_full_python_paths_work_without_being_listed(separator: str) -> None:
    """A path may have a dot or a colon before the class."""
    source = CatalogPluginSource(installed_catalog())
    found = source.connector(f"tests.agent.plugins.plugin_table{separator}PlainSource")
    assert found.python_class.__name__ == PlainSource.__name__
    assert found.version == "1.0"
    assert issubclass(source.connector("FileStreamSink").python_class, SinkConnector)


@cases(
    "name, known",
    ("Json", "org.apache.kafka.connect.json.JsonConverter"),
    ("tests.support.anything:Converter", "tests.support.anything:Converter"),
    ("json:JSONDecoder", "json:JSONDecoder"),
    ("no.such.Converter", None),
    ("Nothing", None),
    ("", None),
)
def test_classes_are_checked_without_importing_them(name: str, known: str | None) -> None:
    """For an unlisted path only the top-level package is checked."""
    if known is not None:
        assert known_class(installed_catalog(), name) == known
        return
    with pytest.raises(LookupError):
        known_class(installed_catalog(), name)
