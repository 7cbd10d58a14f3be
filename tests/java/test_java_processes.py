"""A Java process and the frames to and from it, without a worker and without a broker."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil
import pytest

from pyconnect_agent.java.class_archive import make_archive
from pyconnect_agent.java.errors import JavaConnectError, JavaPluginError
from pyconnect_agent.java.frames import Kind, decode_source
from pyconnect_agent.java.installation import find_installation
from pyconnect_agent.java.launch import JavaOptions
from pyconnect_agent.java.link import JavaLink
from pyconnect_agent.java.process import JavaProcess
from pyconnect_agent.java.source_records import JavaSourceRecords
from pyconnect_api import ConnectException
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.eventually import eventually
from tests.support.java_plugin_jars import test_connectors as compiled_connectors

pytestmark = pytest.mark.java

WAIT_S = 60
STORAGE = "org.apache.kafka.connect.storage"
SMALL = JavaOptions(heap="96m", quick=True)


@pytest.fixture(scope="module")
def jar(kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The jar of the connectors in `java_plugins`."""
    plugin_path = tmp_path_factory.mktemp("java") / "plugins"
    plugin_path.mkdir()
    compiled_connectors(kafka_runtime, plugin_path)
    return str(plugin_path / "tests" / "tests.jar")


@pytest.fixture
def process() -> Iterator[JavaProcess]:
    started = JavaProcess(find_installation({}), SMALL)
    yield started
    started.kill()


@pytest.fixture
def link(process: JavaProcess) -> Iterator[JavaLink]:
    answers = {"readOffsets": lambda asked: [None for _ in asked["partitions"]]}
    made = JavaLink(process, answers)
    yield made
    made.close()


def job(jar: str, name: str) -> dict[str, Any]:
    def converter(kind: str) -> dict[str, Any]:
        return {"class": f"{STORAGE}.{kind}", "config": {}}

    return {
        "mode": "task",
        "connector": {"class": f"io.pyconnect.tests.{name}", "jars": [jar]},
        "converters": {
            "key": converter("StringConverter"),
            "value": converter("StringConverter"),
            "header": converter("SimpleHeaderConverter"),
        },
        "transforms": [],
    }


def poll(link: JavaLink) -> JavaSourceRecords:
    link.tell(Kind.CREDIT)
    payload = link.batches.get(timeout=WAIT_S)
    assert payload is not None, link.ended()
    return JavaSourceRecords.of(decode_source(payload))


def test_large_poll_comes_in_parts(link: JavaLink, jar: str) -> None:
    """A part is sent once it has 512 KiB, and no record is lost or repeated."""
    facts = link.begin(job(jar, "NumberSource"))
    assert (facts["isSource"], facts["hearsOfRecords"]) == (True, True)
    config = {"topic": "t", "limit": "50", "most": "50", "padding": "50000"}
    link.call("start", config=config)
    parts = [poll(link)]
    while not parts[-1].batch.facts["last"]:
        payload = link.batches.get(timeout=WAIT_S)
        assert payload is not None
        parts.append(JavaSourceRecords.of(decode_source(payload)))
    assert [len(part) for part in parts] == [11] * 4 + [6]
    whole = [record for part in parts for record in part]
    assert [record.source_offset for record in whole] == [{"number": n} for n in range(50)]
    assert [number for part in parts for number in part.numbers] == list(range(50))
    assert all((value or b"").startswith(b"number ") for p in parts for value in p.batch.values)


def test_credits_limit_the_polls_under_way(link: JavaLink, jar: str) -> None:
    """The task is polled once for each credit, and not in between."""
    link.begin(job(jar, "NumberSource"))
    link.call("start", config={"topic": "t", "limit": "1000"})
    for _ in range(3):
        link.tell(Kind.CREDIT)
    for first in (0, 5, 10):
        payload = link.batches.get(timeout=WAIT_S)
        assert payload is not None
        assert JavaSourceRecords.of(decode_source(payload)).numbers[0] == first
    # What is answered after a poll would have come before this answer.
    assert "Java thread" in link.stacks()
    assert link.batches.empty()


def test_exceptions_have_their_java_traces(link: JavaLink, jar: str) -> None:
    link.begin(job(jar, "NoteSink"))
    with pytest.raises(JavaPluginError) as failure:
        link.call("start", config={})
    assert failure.value.java_class == "java.lang.NullPointerException"
    assert "\tat io.pyconnect.tests.NoteSink$Notes.start" in failure.value.java_trace


def test_frames_load_no_data_binding(jar: str, tmp_path: Path) -> None:
    """Jackson's ObjectMapper would be the largest part of a process that needs no JSON itself."""
    log = tmp_path / "classes"
    process = JavaProcess(find_installation({}), SMALL, (f"-Xlog:class+load:file={log}",))
    link = JavaLink(process, {"readOffsets": lambda asked: [None for _ in asked["partitions"]]})
    link.begin(job(jar, "NumberSource"))
    link.call("start", config={"topic": "t", "limit": "5"})
    assert len(poll(link)) == 5
    link.close()
    loaded = log.read_text()
    assert "io.pyconnect.host.SourceHost" in loaded
    assert ".ObjectMapper " not in loaded


def test_task_opens_few_jars(link: JavaLink, process: JavaProcess, jar: str) -> None:
    """Java keeps the directory of each jar in which it has looked for a class or a service."""
    link.begin(job(jar, "NumberSource"))
    link.call("start", config={"topic": "t", "limit": "5"})
    assert len(poll(link)) == 5
    files = {Path(file.path).name for file in psutil.Process(process.pid).open_files()}
    opened = [name for name in files if name.endswith(".jar")]
    assert Path(jar).name in opened
    assert len(opened) < 20, opened


def test_archive_of_classes(tmp_path: Path) -> None:
    """It is made once and shared; one that cannot be made or mapped does no harm."""
    installation = replace(find_installation({}), archive=str(tmp_path / "made" / "classes.jsa"))
    archive = Path(installation.archive)
    make_archive(installation)
    made = archive.stat()
    make_archive(installation)
    assert archive.stat() == made
    link = JavaLink(process := JavaProcess(installation, SMALL))
    link.begin({"mode": "questions"})
    maps = {found.path: found for found in psutil.Process(process.pid).memory_maps()}
    mapped = maps[str(archive)]
    assert mapped.anonymous < mapped.rss / 2
    link.close()
    archive.write_bytes(b"broken")
    link = JavaLink(JavaProcess(installation, SMALL))
    link.begin({"mode": "questions"})
    link.close()
    (tmp_path / "file").touch()
    make_archive(replace(installation, archive=str(tmp_path / "file" / "classes.jsa")))


def test_secrets_are_not_on_the_command_line(
    link: JavaLink, process: JavaProcess, jar: str
) -> None:
    """Configurations of connectors and converters go to the process by its socket alone."""
    described = job(jar, "NumberSource")
    described["converters"]["value"]["config"] = {"password": "of-a-converter"}
    link.begin(described)
    link.call("start", config={"topic": "t", "password": "of-a-task"})
    java = psutil.Process(process.pid)
    shown = " ".join([*java.cmdline(), *java.environ().values()])
    assert "io.pyconnect.host.Host" in shown
    assert "of-a-" not in shown


def test_class_of_a_newer_java(link: JavaLink, jar: str) -> None:
    """The error names the class, the Java that runs, and the key that names another."""
    with pytest.raises(JavaConnectError, match=r"NewSink needs a newer Java .* agent\.java\.home"):
        link.begin(job(jar, "NewSink"))


def test_broken_jar(link: JavaLink, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jar"
    broken.write_bytes(b"not a jar")
    with pytest.raises(JavaConnectError, match="Failed to find the class"):
        link.begin(job(str(broken), "NoteSink"))


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (JavaOptions(options=("-XX:+NoSuchOption",)), "Unrecognized VM option 'NoSuchOption'"),
        (JavaOptions(heap="1m", initial_heap="1m"), "Too small maximum heap"),
    ],
)
def test_options_that_java_refuses(options: JavaOptions, fault: str) -> None:
    """The error begins with the reason, and names the keys."""
    link = JavaLink(JavaProcess(find_installation({}), options))
    with pytest.raises(ConnectException, match=rf"Java did not start: {fault}.* agent\.java\.heap"):
        link.begin({"mode": "questions"})
    link.close()


def test_process_that_is_killed(link: JavaLink, process: JavaProcess, jar: str) -> None:
    """Who waits for an answer, and who asks later, learns how the process ended."""
    link.begin(job(jar, "NumberSource"))
    psutil.Process(process.pid).send_signal(signal.SIGSTOP)
    waiting = link.send(Kind.STACKS)
    psutil.Process(process.pid).kill()
    for ask in (partial(link.answer, waiting), partial(link.call, "stop")):
        with pytest.raises(ConnectException, match=r"was killed by SIGKILL"):
            ask()
    assert link.has_ended


@pytest.mark.parametrize("is_frozen", [False, True])
def test_process_ends_with_its_parent(*, is_frozen: bool) -> None:
    """Also one that is stopped and cannot see the end of its socket."""
    ours, theirs = multiprocessing.Pipe()
    parent = multiprocessing.get_context("spawn").Process(target=_start_java, args=(theirs,))
    parent.start()
    java = psutil.Process(ours.recv())
    if is_frozen:
        java.send_signal(signal.SIGSTOP)
    parent.kill()
    parent.join()
    eventually(lambda: not java.is_running() or java.status() == psutil.STATUS_ZOMBIE, WAIT_S)


def _start_java(connection: Connection) -> None:
    link = JavaLink(process := JavaProcess(find_installation({}), SMALL))
    link.begin({"mode": "questions"})
    connection.send(process.pid)
    signal.pause()
