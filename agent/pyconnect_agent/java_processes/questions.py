"""A Java process that answers questions about classes of plugins and starts none of them.

The process is started with the first question. It compiles little code, because it ends after its
answers.

Such a process also makes the archive of Kafka's classes and the host's, which Java processes map
into memory: once for each combination of Java, jars and host, by the worker that first looks for
Java plugins. Two workers may make it at the same time: the last archive stays. A Java that cannot
make or map it loads the classes from the jars.
"""

import logging
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from pyconnect_agent.java_processes.frames import FrameKind, json_bytes
from pyconnect_agent.java_processes.jar_scan import API_CLASSES
from pyconnect_agent.java_processes.launch import JavaClass, JavaInstallation, JavaOptions
from pyconnect_agent.java_processes.link import JavaFailure, JavaLink
from pyconnect_agent.java_processes.process import PROVEN_OPTIONS, JavaProcess
from pyconnect_api import ConnectException

LOG = logging.getLogger(__name__)

DESCRIBE_TIMEOUT_S = 60.0


class JavaQuestions:
    """One process for all questions of one purpose. Close it after use."""

    def __init__(
        self,
        installation: Callable[[], JavaInstallation],
        options: JavaOptions,
        *,
        locations: Callable[[], Sequence[object]] = tuple,
    ) -> None:
        """Keep `installation` and `locations` (see `Loaders.java`), used at the first question."""
        self._installation = installation
        self._options = replace(options, quick=True)
        self._locations = locations
        self._link: JavaLink | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, method: str, **arguments: object) -> Any:
        """Return the answer, of JSON's types.

        Raises the exception of the Java code (`java.errors`), and ConnectException without an
        installation, or once the process has ended.
        """
        return self._started().call(method, **arguments)

    def describe(
        self, classes: Sequence[JavaClass], *, timeout_s: float = DESCRIBE_TIMEOUT_S
    ) -> Sequence[Mapping[str, object]]:
        """Return facts of each class, or the reason why it cannot be used (`Questions.java`).

        Raises as `ask` does, and ConnectException after `timeout_s` seconds.
        """
        link = self._started()
        plugins = [item.to_json() for item in classes]
        question = {"method": "describe", "plugins": plugins, "bases": list(API_CLASSES)}
        call = link.send(FrameKind.CALL, json_bytes(question))
        try:
            call.result(timeout_s)
            found = link.answer(call)
        except TimeoutError as error:
            raise ConnectException(f"a plugin took longer than {timeout_s:.0f} s") from error
        except JavaFailure as error:
            raise ConnectException(f"{error.java_class}: {error}") from error
        assert isinstance(found, list)
        return found

    def forget(self) -> bool:
        """Let the process drop the instances of plugins, which may hold values of a config.

        Returns False if there is no process, or if it failed to.
        """
        if self._link is None:
            return False
        try:
            self._link.call("forget")
        except (ConnectException, JavaFailure):
            return False
        return True

    def close(self) -> None:
        """End the process if there is one."""
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def _started(self) -> JavaLink:
        if self._link is None:
            self._link = JavaLink(JavaProcess(self._installation(), self._options))
            self._link.begin({"mode": "questions", "locations": list(self._locations())})
        return self._link


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
            # A Java that refuses one of these options runs without an archive and without them.
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
