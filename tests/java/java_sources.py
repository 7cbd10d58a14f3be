"""Java plugins of a test's own, compiled against Kafka's jars."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from pyconnect_sandbox.runtime import KafkaRuntime

CONNECTOR = """
package %(package)s;
import java.util.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
public class %(name)s extends org.apache.kafka.connect.source.SourceConnector {
    %(body)s
    @Override public String version() { return %(version)s; }
    @Override public ConfigDef config() { return new ConfigDef(); }
    @Override public void start(Map<String, String> config) {}
    @Override public void stop() {}
    @Override public Class<? extends Task> taskClass() { return null; }
    @Override public List<Map<String, String>> taskConfigs(int most) { return List.of(); }
}
"""


def connector(name: str, *, version: str = '"1.0"', body: str = "") -> str:
    """Return a connector's source; `version` is an expression, `body` has members of the class."""
    package, _, simple = name.rpartition(".")
    return CONNECTOR % {"package": package, "name": simple, "version": version, "body": body}


def compiled(
    runtime: KafkaRuntime, sources: Mapping[str, str], directory: Path, *jars: Path
) -> Path:
    """Compile `sources`, texts by class name, into `directory`.

    `jars` are libraries besides Kafka's.
    """
    root = directory.with_name(f"{directory.name}.src")
    for name, text in sources.items():
        path = root / f"{name.replace('.', '/')}.java"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    javac = runtime.java.executable.resolve().with_name("javac")
    files = map(str, sorted(root.rglob("*.java")))
    path = ":".join([f"{runtime.libs}/*", *map(str, jars)])
    options = ("-J-XX:TieredStopAtLevel=1", "-nowarn", "-cp", path, "-d", str(directory))
    command = [str(javac), *options, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stderr
    return directory
