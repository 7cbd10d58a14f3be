"""Locations of Java plugins for tests: Apache's file connectors, and those of `java_plugins`."""

import shutil
import subprocess
from pathlib import Path

from pyconnect_sandbox.runtime import KafkaRuntime

SOURCES = Path(__file__).parent / "java_plugins"
PACKAGE = "io.pyconnect.tests"
CLASS_VERSION, TOO_NEW = slice(6, 8), (200).to_bytes(2)
CONNECTORS = {"source.SourceConnector": "NumberSource", "sink.SinkConnector": "NoteSink"}


def file_connectors(runtime: KafkaRuntime, plugin_path: Path) -> None:
    """Make a location of Apache's FileStream connectors."""
    location = plugin_path / "file"
    location.mkdir()
    (jar,) = runtime.libs.glob("connect-file-*.jar")
    shutil.copy(jar, location)


def test_connectors(runtime: KafkaRuntime, plugin_path: Path) -> None:
    """Compile the connectors of the tests, and make a location of them."""
    classes = plugin_path.parent / "classes"
    services = classes / "META-INF" / "services"
    services.mkdir(parents=True)
    for kind, name in CONNECTORS.items():
        (services / f"org.apache.kafka.connect.{kind}").write_text(f"{PACKAGE}.{name}\n")
    sources = sorted(map(str, SOURCES.glob("*.java")))
    javac = runtime.java.executable.with_name("javac")
    class_path = f"{runtime.libs}/*"
    quick = "-J-XX:TieredStopAtLevel=1"
    command = [javac, quick, "--release", "17", "-cp", class_path, "-d", classes, *sources]
    subprocess.run(command, check=True)
    too_new = classes / PACKAGE.replace(".", "/") / "NewSink.class"
    code = bytearray(too_new.read_bytes())
    code[CLASS_VERSION] = TOO_NEW
    too_new.write_bytes(code)
    location = plugin_path / "tests"
    location.mkdir()
    shutil.make_archive(str(location / "tests"), "zip", classes)
    (location / "tests.zip").rename(location / "tests.jar")
