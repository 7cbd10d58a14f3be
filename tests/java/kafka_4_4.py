"""Kafka 4.4.0 for tests, with the FileStream connectors of 4.3.1.

Maven Central has no `connect-file` 4.4.0. The one of 4.3.1 needs a class that 4.4 has moved; the
class below has the old name and calls the moved class.
"""

import shutil
from dataclasses import replace
from pathlib import Path

from pyconnect_agent.core.plugin_catalog import RELEASE_4_4
from pyconnect_sandbox.jars import fetched
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.java.java_sources import compiled

MOVED = "org.apache.kafka.common.utils.AppInfoParser"
SOURCE = """
package org.apache.kafka.common.utils;
public class AppInfoParser {
    public static String getVersion() {
        return org.apache.kafka.common.utils.internals.AppInfoParser.getVersion();
    }
}
"""


def runtime_with_file_connectors(
    of_4_3: KafkaRuntime, directory: Path, newer: Path | None = None
) -> KafkaRuntime:
    """Return Kafka 4.4.0, or the jars of `newer`, in a directory of links.

    `of_4_3` is the runtime that has `connect-file`.
    """
    libs = directory / "libs"
    libs.mkdir()
    (file_jar,) = of_4_3.libs.glob("connect-file-*.jar")
    for jar in (file_jar, *(newer or fetched(RELEASE_4_4)).glob("*.jar")):
        (libs / jar.name).symlink_to(jar)
    classes = compiled(replace(of_4_3, libs=libs), {MOVED: SOURCE}, directory / "classes")
    shutil.make_archive(str(libs / "moved"), "zip", classes)
    (libs / "moved.zip").rename(libs / "moved.jar")
    return replace(of_4_3, libs=libs)
