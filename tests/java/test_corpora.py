"""Our plugins treat random cases as Apache's do, and an agent finds the same plugins."""

import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pyconnect_agent.builtin.transforms.java_date_format import JavaDateFormat
from pyconnect_agent.core.plugin_catalog import RELEASES
from pyconnect_agent.worker.plugins import find_plugins
from pyconnect_api import DataException
from pyconnect_sandbox.jars import fetched
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.agent.builtin.converters import converter_corpus, converter_deviations
from tests.agent.builtin.transforms import transform_corpus, transform_deviations
from tests.java.java_sources import compiled, connector
from tests.support.plugins.java_jars import make_jar
from tests.support.seeds import chosen

pytestmark = [pytest.mark.java, pytest.mark.long(only=True), pytest.mark.timeout(900)]

CASES = 1000
LIMIT_S = 200
DESCRIPTIONS = Path(__file__).parent / "Descriptions.java"


@dataclass(frozen=True, slots=True)
class Judged:
    """The result for all seeds: differences without a rule, and rules without a case."""

    cases: int
    differences: list[str]
    unused: set[str]
    java_version: int


def judge(
    runtime: KafkaRuntime,
    program: Path,
    seeds: Iterable[int],
    directory: Path,
    *,
    corpus: Any,
    deviations: Any,
) -> Judged:
    """Run a program for each seed.

    `corpus` is a module with `java_version` and `cases`; `deviations` is one with `RULES`,
    `reasons` and `described`.
    """
    sources = {path.stem: path.read_text() for path in (DESCRIPTIONS, program)}
    classes = compiled(runtime, sources, directory / "classes")
    reasons: Callable[[Any, int], frozenset[str] | None] = deviations.reasons
    count, differences, used, version = 0, list[str](), set[str](), 0
    for seed in seeds:
        lines = printed(runtime, classes, program.stem, str(seed), str(CASES))
        version = corpus.java_version(lines)
        for case in corpus.cases(lines):
            count += 1
            found = reasons(case, version)
            if found is not None and not found:
                differences.append(deviations.described(case))
            used |= found or set()
    unused = {rule.__name__ for rule in deviations.RULES} - used
    return Judged(count, differences, unused, version)


def printed(runtime: KafkaRuntime, classes: Path, program: str, *arguments: str) -> list[str]:
    """Run a program with Kafka's jars, and return its lines."""
    command = [
        str(runtime.java.executable),
        # No program runs long enough to gain from the optimizing compiler.
        "-XX:TieredStopAtLevel=1",
        "-Duser.timezone=UTC",
        "-Duser.language=en",
        "-Duser.country=US",
        "-cp",
        f"{classes}:{runtime.libs}/*",
        program,
        *arguments,
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


CONVERTERS = Path(__file__).parent / "converters" / "ConverterCorpus.java"
# The default seeds reach every rule: both tests share the same cases.
CONVERTER_SEEDS = chosen((1,), long=(2, 3))


@pytest.fixture(scope="module")
def converters(kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    return judge(
        kafka_runtime,
        CONVERTERS,
        CONVERTER_SEEDS,
        tmp_path_factory.mktemp("program"),
        corpus=converter_corpus,
        deviations=converter_deviations,
    )


def test_converters_differ_from_apaches_by_known_rules_only(converters: Judged) -> None:
    """Our converters act as Apache's on thousands of inputs, apart from known deviations."""
    assert converters.cases > len(CONVERTER_SEEDS) * 10 * CASES
    assert not converters.differences, "\n".join(converters.differences[:5])


def test_every_deviation_of_converters_still_exists(converters: Judged) -> None:
    """Each known deviation of converters has a case: a rule without one would hide mistakes."""
    assert converters.unused == ({"_more_float_digits"} if converters.java_version >= 19 else set())


TRANSFORMS = Path(__file__).parent / "transforms" / "TransformCorpus.java"
# The default seed reaches every rule: both tests share the same cases.
TRANSFORM_SEEDS = chosen((4,), long=(1, 2, 3, 5))


@pytest.fixture(scope="module", params=chosen(RELEASES[:1], long=RELEASES[1:]))
def transforms(
    request: pytest.FixtureRequest,
    kafka_runtime: KafkaRuntime,
    tmp_path_factory: pytest.TempPathFactory,
) -> Judged:
    return judge(
        replace(kafka_runtime, libs=fetched(request.param)),
        TRANSFORMS,
        TRANSFORM_SEEDS,
        tmp_path_factory.mktemp("program"),
        corpus=transform_corpus,
        deviations=transform_deviations,
    )


def test_transformations_differ_from_apaches_by_known_rules_only(transforms: Judged) -> None:
    """Our transformations act as Apache's on thousands of records, apart from known deviations."""
    assert transforms.cases > len(TRANSFORM_SEEDS) * 20 * CASES
    assert not transforms.differences, "\n".join(transforms.differences[:5])


def test_every_deviation_of_transformations_still_exists(transforms: Judged) -> None:
    """Each known deviation of transformations has a case, except for long floats."""
    # Java 19 and newer write floats with the fewest digits; not every seed has a longer float.
    assert transforms.unused <= {"_more_float_digits"}


ZONES = Path(__file__).parent / "transforms" / "ZoneTexts.java"
_HISTORIES = ("1899", "1985", "2012")
"""Years whose offsets depend on the release of the zone database."""


def test_all_names_and_numbers_of_zones_are_read_as_in_java(
    kafka_runtime: KafkaRuntime, tmp_path: Path
) -> None:
    """Java's English zone names are read in winter, in summer, and at clock changes."""
    classes = compiled(kafka_runtime, {ZONES.stem: ZONES.read_text()}, tmp_path)
    formats: dict[str, JavaDateFormat] = {}
    differences, count = [], 0
    for line in printed(kafka_runtime, classes, ZONES.stem):
        pattern, text, expected = line.split("\t")
        date_format = formats.setdefault(pattern, JavaDateFormat(pattern))
        try:
            found = str(date_format.milliseconds(text))
        except DataException:
            found = "refused"
        count += 1
        if found != expected and not (text.startswith(_HISTORIES) and "refused" not in line):
            differences.append(f"{line}, ours {found}")
    assert count > 8000
    assert not differences, "\n".join(differences[:20])


SCAN = Path(__file__).with_name("PluginScan.java")
API = "org.apache.kafka.connect"
ODD_PROVIDER = """
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
ODD_CONVERTERS = """
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
SCANNED = {
    "zoo.Converters": ODD_CONVERTERS,
    "zoo.Provider": ODD_PROVIDER.format("Provider"),
    "zoo.Unlisted": ODD_PROVIDER.format("Unlisted"),
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
LISTED = {
    f"{API}.source.SourceConnector": ["zoo.Deep", "zoo.Twice", "zoo.Missing"],
    f"{API}.sink.SinkConnector": ["zoo.Wrong"],
    f"{API}.storage.Converter": ["zoo.Converters", "zoo.Converters$Hidden"],
    "org.apache.kafka.common.config.provider.ConfigProvider": ["zoo.Provider"],
}


@pytest.fixture(scope="module")
def plugin_path(kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Jars that need each other, class files, a link, a single jar, and a missing entry."""
    built = tmp_path_factory.mktemp("built")
    root, linked = built / "plugins", built / "linked"
    root.mkdir()
    for version, directory in (("1.0", built / "first"), ("2.0", root / "classes")):
        library = f'package lib; public class Version {{ public static String OF = "{version}"; }}'
        compiled(kafka_runtime, {**SCANNED, "lib.Version": library}, directory)
    shutil.rmtree(root / "classes.src")
    content = {
        path.relative_to(built / "first").with_suffix("").as_posix(): path.read_bytes()
        for path in (built / "first").rglob("*.class")
    }
    elsewhere = content.pop("zoo/Elsewhere")
    bases = {name: content.pop(name) for name in ("zoo/Base", "zoo/Middle", "zoo/NotPublic")}
    make_jar(root / "jars" / "lib" / "bases.jar", bases)
    plugins = make_jar(root / "jars" / "plugins.jar", content, LISTED)
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


@pytest.mark.parametrize("mode", ["only_scan", "service_load"])
def test_the_plugins_are_those_of_kafka_connect(
    mode: str,
    plugin_path: str,
    kafka_runtime: KafkaRuntime,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An agent finds the plugins that Kafka finds, with their kinds, versions and locations."""
    monkeypatch.setattr("pyconnect_agent.worker.plugins.java_cache", lambda: tmp_path)
    classes = compiled(kafka_runtime, {"PluginScan": SCAN.read_text()}, tmp_path / "program")
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
