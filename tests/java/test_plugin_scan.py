"""The Java plugins that an agent finds are those that Apache's own scanners find."""

import shutil
import zipfile
from pathlib import Path

import pytest

from pyconnect_agent.worker.plugins import find_plugins
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.java.corpora import printed
from tests.java.java_sources import compiled, connector
from tests.support.plugins.java_jars import make_jar

pytestmark = [pytest.mark.java, pytest.mark.timeout(850)]

PROGRAM = Path(__file__).with_name("PluginScan.java")
API = "org.apache.kafka.connect"
PROVIDER = """
package zoo;
import java.util.*;
import org.apache.kafka.common.config.*;
public class {0} implements org.apache.kafka.common.config.provider.ConfigProvider {{
    @Override public void configure(Map<String, ?> config) {{}}
    @Override public ConfigData get(String path) {{ return null; }}
    @Override public ConfigData get(String path, Set<String> keys) {{ return null; }}
    @Override public void close() {{}}
}}
"""
CONVERTERS = """
package zoo;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.data.*;
import org.apache.kafka.connect.storage.*;
public class Converters implements Converter, HeaderConverter {
    @Override public void configure(Map<String, ?> config) {}
    @Override public void configure(Map<String, ?> config, boolean isKey) {}
    @Override public byte[] fromConnectData(String t, Schema s, Object v) { return null; }
    @Override public SchemaAndValue toConnectData(String t, byte[] v) { return null; }
    @Override
    public byte[] fromConnectHeader(String t, String n, Schema s, Object v) { return null; }
    @Override public SchemaAndValue toConnectHeader(String t, String n, byte[] v) { return null; }
    @Override public ConfigDef config() { return new ConfigDef(); }
    @Override public void close() {}
    @Override public String version() { return "2"; }

    public static class Nested extends Converters {}
    protected static class Protected extends Converters {}
    static class Hidden extends Converters {}
    public class Inner extends Converters {}
    public abstract static class Abstract extends Converters {}
    public static class Private extends Converters { private Private() {} }
    public static class Arguments extends Converters { public Arguments(int number) {} }
    public static class Broken extends Converters {
        public Broken() { throw new IllegalStateException("broken"); }
    }
    public interface Kind extends Converter {}
}
"""
SOURCES = {
    "zoo.Converters": CONVERTERS,
    "zoo.Provider": PROVIDER.format("Provider"),
    "zoo.Unlisted": PROVIDER.format("Unlisted"),
    "zoo.Base": connector("zoo.Base").replace("public class", "public abstract class"),
    "zoo.Middle": "package zoo; public abstract class Middle extends Base {}",
    "zoo.Deep": "package zoo; public class Deep extends Middle {}",
    "zoo.NotPublic": "package zoo; abstract class NotPublic extends Base {}",
    "zoo.BelowNotPublic": "package zoo; public class BelowNotPublic extends NotPublic {}",
    "zoo.OfKafka": f"package zoo; public class OfKafka extends {API}.json.JsonConverter {{}}",
    "zoo.WithoutVersion": connector("zoo.WithoutVersion", version="null"),
    "zoo.FailingVersion": connector("zoo.FailingVersion", version='"".substring(1)'),
    "zoo.Wrong": connector("zoo.Wrong"),
    "zoo.Twice": connector("zoo.Twice", version="lib.Version.OF"),
    "zoo.Elsewhere": connector("zoo.Elsewhere"),
}
SINGLE = ("zoo/Twice", "lib/Version")
SERVICES = {
    f"{API}.source.SourceConnector": ["zoo.Deep", "zoo.Twice", "zoo.Missing"],
    f"{API}.sink.SinkConnector": ["zoo.Wrong"],
    f"{API}.storage.Converter": ["zoo.Converters", "zoo.Converters$Hidden"],
    "org.apache.kafka.common.config.provider.ConfigProvider": ["zoo.Provider"],
}


@pytest.fixture(scope="module")
def plugin_path(kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Jars that need each other, class files, a link, a single jar, an entry that is not there."""
    built = tmp_path_factory.mktemp("built")
    root, linked = built / "plugins", built / "linked"
    root.mkdir()
    for version, directory in (("1.0", built / "first"), ("2.0", root / "classes")):
        library = f'package lib; public class Version {{ public static String OF = "{version}"; }}'
        compiled(kafka_runtime, {**SOURCES, "lib.Version": library}, directory)
    shutil.rmtree(root / "classes.src")
    content = {
        path.relative_to(built / "first").with_suffix("").as_posix(): path.read_bytes()
        for path in (built / "first").rglob("*.class")
    }
    elsewhere = content.pop("zoo/Elsewhere")
    bases = {name: content.pop(name) for name in ("zoo/Base", "zoo/Middle", "zoo/NotPublic")}
    make_jar(root / "jars" / "lib" / "bases.jar", bases)
    plugins = make_jar(root / "jars" / "plugins.jar", content, SERVICES)
    (root / "jars" / "broken.jar").write_bytes(b"PK broken")
    single = make_jar(built / "single.jar", {each: content[each] for each in SINGLE})
    hidden = ("WEB-INF/classes", "BOOT-INF/classes", "META-INF/versions/17")
    web = make_jar(
        root / "jars" / "web.jar", {f"{place}/zoo/Elsewhere": elsewhere for place in hidden}
    )
    with zipfile.ZipFile(web, "a") as jar:
        jar.write(root / "jars" / "lib" / "bases.jar", "BOOT-INF/lib/bases.jar")
    linked.mkdir()
    (linked / "plugins.jar").symlink_to(plugins)
    (root / "link").symlink_to(linked)
    return f"{root}, {built / 'gone'}, {single}"


@pytest.mark.long(only=True)
@pytest.mark.parametrize("mode", ["only_scan", "service_load"])
def test_the_plugins_are_those_of_kafka_connect(
    mode: str,
    plugin_path: str,
    kafka_runtime: KafkaRuntime,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With kinds, versions and locations. An agent finds Kafka's own by service files only."""
    monkeypatch.setattr("pyconnect_agent.worker.plugins.java_cache", lambda: tmp_path)
    classes = compiled(kafka_runtime, {"PluginScan": PROGRAM.read_text()}, tmp_path / "program")
    lines = printed(kafka_runtime, classes, "PluginScan", plugin_path, mode)
    apaches = {tuple(line.split("\t")[1:]) for line in lines if line.startswith("plugin\t")}
    properties = {
        "plugin.path": plugin_path,
        "plugin.discovery": mode,
        "agent.java.kafka.home": str(kafka_runtime.libs),
    }
    ours = {
        (plugin.kind.value, plugin.class_name, plugin.version or "undefined", plugin.location)
        for plugin in find_plugins(properties).java.plugins
    }
    if mode == "only_scan":
        apaches, ours = (
            {plugin for plugin in found if plugin[3] != "classpath"} for found in (apaches, ours)
        )
    assert ours - apaches == set()
    assert apaches - ours == set()
    assert {version for _, name, version, _ in ours if name == "zoo.Twice"} >= {"1.0"}
