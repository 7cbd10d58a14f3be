"""An archive of Kafka's classes and the host's, which Java processes map into memory.

Made once for each combination of Java, jars and host, by the worker that first looks for Java
plugins. Two workers may make it at the same time: the last one counts. A Java that cannot make or
map it loads the classes from the jars.
"""

from __future__ import annotations

import logging
import tempfile
import zipfile
from pathlib import Path

from pyconnect_agent.java_processes.launch import JavaInstallation, JavaOptions
from pyconnect_agent.java_processes.link import JavaFailure, JavaLink
from pyconnect_agent.java_processes.process import PROVEN_OPTIONS, JavaProcess
from pyconnect_api import ConnectException

LOG = logging.getLogger(__name__)

HEAP = "128m"
WRITE_TIMEOUT_S = 60.0
_STORAGE = "org.apache.kafka.connect.storage"
_USUAL = (
    f"{_STORAGE}.StringConverter",
    f"{_STORAGE}.SimpleHeaderConverter",
    "org.apache.kafka.connect.json.JsonConverter",
)


def make_archive(installation: JavaInstallation) -> None:
    """Make the archive unless it exists; a failure is only logged."""
    archive = Path(installation.archive)
    if archive.exists():
        return
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=archive.parent) as work:
            finished = Path(work) / archive.name
            with zipfile.ZipFile(installation.host_jar) as jar:
                names = [name for name in jar.namelist() if name.endswith(".class")]
            # A Java that refuses one of these options gets no archive, and runs without them.
            archive_options = (f"-XX:ArchiveClassesAtExit={finished}", *PROVEN_OPTIONS)
            link = JavaLink(JavaProcess(installation, JavaOptions(heap=HEAP), archive_options))
            try:
                link.begin({"mode": "questions"})
                for name in names:
                    loaded = name.removesuffix(".class").replace("/", ".")
                    link.call("load", plugin={"class": loaded, "jars": []}, bases=[])
                for name in _USUAL:
                    link.call("config", plugin={"class": name, "jars": []})
            finally:
                link.close(WRITE_TIMEOUT_S)
            finished.replace(archive)
    except (ConnectException, JavaFailure, OSError, zipfile.BadZipFile) as error:
        LOG.info("Java processes start without an archive of classes", extra={"reason": str(error)})
