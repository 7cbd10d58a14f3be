"""A Java process and its frames, without a worker and without a broker."""

import logging
import multiprocessing
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil
import pytest

from pyconnect_agent.java_processes.build import LOWEST_JAVA
from pyconnect_agent.java_processes.frames import FrameKind, JavaSourceRecords, decode_source
from pyconnect_agent.java_processes.installation import JAVA_HOME_KEY, find_installation
from pyconnect_agent.java_processes.launch import JavaOptions
from pyconnect_agent.java_processes.link import Answer, JavaConnectError, JavaLink, JavaPluginError
from pyconnect_agent.java_processes.process import JavaProcess
from pyconnect_agent.java_processes.questions import make_archive
from pyconnect_api import ConnectException
from pyconnect_clients.installation import java_version
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.java.java_sources import compiled, connector
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.plugins.java_jars import test_connectors as compiled_connectors

pytestmark = pytest.mark.java

WAIT_S = 150
STORAGE = "org.apache.kafka.connect.storage"
SMALL = JavaOptions(heap="96m", quick=True)
ANSWERS: dict[str, Answer] = {"readOffsets": lambda asked: [None for _ in asked["partitions"]]}


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
    made = JavaLink(process, ANSWERS)
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
    link.tell(FrameKind.CREDIT)
    payload = link.batches.get(timeout=WAIT_S)
    assert payload is not None, link.ended()
    return JavaSourceRecords.of(decode_source(payload))


def test_large_poll_comes_in_parts(link: JavaLink, jar: str) -> None:
    """The host sends a part at 512 KiB, and no record is lost or repeated."""
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


def test_large_records_in_a_small_heap(link: JavaLink, jar: str) -> None:
    """A record of a fifth of the heap fits four times: as text, bytes, column and frame."""
    link.begin(job(jar, "NumberSource"))
    config = {"topic": "t", "limit": "2", "most": "1", "padding": "18000000"}
    link.call("start", config=config)
    sizes = []
    for _ in range(2):
        # The last part of a poll is empty.
        first = poll(link)
        assert link.batches.get(timeout=WAIT_S) is not None, link.ended()
        sizes += [len(value or b"") for value in first.batch.values]
    assert sizes == [18_000_008] * 2


def test_credits_limit_the_polls_under_way(link: JavaLink, jar: str) -> None:
    """The host polls the task once for each credit, and not in between."""
    link.begin(job(jar, "NumberSource"))
    link.call("start", config={"topic": "t", "limit": "1000"})
    for _ in range(3):
        link.tell(FrameKind.CREDIT)
    for first in (0, 5, 10):
        payload = link.batches.get(timeout=WAIT_S)
        assert payload is not None
        assert JavaSourceRecords.of(decode_source(payload)).numbers[0] == first
    # An answer to a further poll would have come before this answer.
    assert "Java thread" in link.stacks()
    assert link.batches.empty()


def test_exceptions_have_their_java_traces(link: JavaLink, jar: str) -> None:
    link.begin(job(jar, "NoteSink"))
    with pytest.raises(JavaPluginError) as failure:
        link.call("start", config={})
    assert failure.value.java_class == "java.lang.NullPointerException"
    assert "\tat io.pyconnect.tests.NoteSink$Notes.start" in failure.value.java_trace


def test_frames_load_no_data_binding(jar: str, tmp_path: Path) -> None:
    """Jackson's ObjectMapper would be the largest part of a process that needs no JSON."""
    log = tmp_path / "classes"
    process = JavaProcess(find_installation({}), SMALL, (f"-Xlog:class+load:file={log}",))
    link = JavaLink(process, ANSWERS)
    link.begin(job(jar, "NumberSource"))
    link.call("start", config={"topic": "t", "limit": "5"})
    assert len(poll(link)) == 5
    link.close()
    loaded = log.read_text()
    assert "io.pyconnect.host.SourceHost" in loaded
    assert ".ObjectMapper " not in loaded


def test_task_opens_few_jars(link: JavaLink, process: JavaProcess, jar: str) -> None:
    """Java keeps in memory the directory of each jar that it has searched."""
    link.begin(job(jar, "NumberSource"))
    link.call("start", config={"topic": "t", "limit": "5"})
    assert len(poll(link)) == 5
    files = {Path(file.path).name for file in psutil.Process(process.pid).open_files()}
    opened = [name for name in files if name.endswith(".jar")]
    assert Path(jar).name in opened
    assert len(opened) < 20, opened


def test_archive_of_classes(tmp_path: Path) -> None:
    """Two workers may make the archive at once; one that cannot be made or mapped does no harm."""
    installation = replace(find_installation({}), archive=str(tmp_path / "made" / "classes.jsa"))
    archive = Path(installation.archive)
    with ThreadPoolExecutor() as workers:
        list(workers.map(make_archive, [installation] * 2))
    assert list(archive.parent.iterdir()) == [archive]
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


@pytest.mark.long(only=True)
def test_every_java_of_the_machine_runs_a_task(jar: str, tmp_path: Path) -> None:
    """Each Java from 17 on maps an archive of its own."""
    default = Path(find_installation({}).java)
    found = {java.resolve() for java in Path("/usr/lib/jvm").glob("*/bin/java")} | {default}
    javas = [java for java in sorted(found) if (java_version(java) or 0) >= LOWEST_JAVA]
    archives = set()
    for java in javas:
        properties = {JAVA_HOME_KEY: str(java.parents[1])}
        installation = find_installation(properties)
        archives.add(installation.archive)
        installation = replace(
            installation, archive=str(tmp_path / Path(installation.archive).name)
        )
        make_archive(installation)
        link = JavaLink(process := JavaProcess(installation, JavaOptions()), ANSWERS)
        link.begin(job(jar, "NumberSource"))
        link.call("start", config={"topic": "t", "limit": "5"})
        assert len(poll(link)) == 5, java
        mapped = {found.path for found in psutil.Process(process.pid).memory_maps()}
        assert installation.archive in mapped, java
        link.close()
    assert len(archives) == len(javas)


def test_secrets_are_not_on_the_command_line(jar: str) -> None:
    """Configurations reach the process by its socket, and properties by a file in memory."""
    secret = replace(SMALL, options=("-Dpassword=of-a-process",))
    link = JavaLink(process := JavaProcess(find_installation({}), secret), ANSWERS)
    described = job(jar, "NumberSource")
    described["converters"]["value"]["config"] = {"password": "of-a-converter"}
    link.begin(described)
    link.call("start", config={"topic": "t", "password": "of-a-task"})
    java = psutil.Process(process.pid)
    shown = " ".join([*java.cmdline(), *java.environ().values()])
    assert "io.pyconnect.host.Host" in shown
    assert "of-a-" not in shown
    link.close()


def test_properties_reach_the_process(kafka_runtime: KafkaRuntime, tmp_path: Path) -> None:
    """Blanks, quotes, backslashes and line ends in a property do not change."""
    value = "a 'b' \"c\" \\d\n#e"
    source = connector("one.Shown", version='System.getProperty("shown")')
    location = compiled(kafka_runtime, {"one.Shown": source}, tmp_path / "shown")
    options = replace(SMALL, options=(f"-Dshown={value}",))
    link = JavaLink(JavaProcess(find_installation({}), options))
    link.begin({"mode": "questions"})
    shown = {"class": "one.Shown", "jars": [f"{location}/"]}
    (answer,) = link.call("describe", plugins=[shown], bases=[])
    assert answer["version"] == value
    link.close()


def test_class_of_a_newer_java(link: JavaLink, jar: str) -> None:
    """The error names the class, the running Java, and the key that selects another one."""
    with pytest.raises(JavaConnectError, match=r"NewSink needs a newer Java .* agent\.java\.home"):
        link.begin(job(jar, "NewSink"))


def test_broken_jar(link: JavaLink, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jar"
    broken.write_bytes(b"not a jar")
    with pytest.raises(JavaConnectError, match="Failed to find the class"):
        link.begin(job(str(broken), "NoteSink"))


@cases(
    "options, fault",
    (JavaOptions(options=("-XX:+NoSuchOption",)), "Unrecognized VM option 'NoSuchOption'"),
    (JavaOptions(options=("-Xms900m",)), "Initial heap size"),
    (JavaOptions(heap="1m", initial_heap="1m"), "Too small maximum heap"),
)
def test_options_that_java_refuses(options: JavaOptions, fault: str) -> None:
    """The error begins with the reason and names the keys."""
    link = JavaLink(JavaProcess(find_installation({}), options))
    with pytest.raises(ConnectException, match=rf"Java did not start: {fault}.* agent\.java\.heap"):
        link.begin({"mode": "questions"})
    link.close()


ENDS = [
    ("memory", (), "ran out of memory (Java heap space): its heap is limited to 96m (-Xmx96m)."),
    ("array", (), "ran out of memory (Requested array size exceeds VM limit): its code asked for"),
    ("classes", ("-XX:MaxMetaspaceSize=24m",), "(Metaspace): the memory for its classes is limi"),
    ("riddle", (), "java.lang.IllegalStateException: asked for its message\n"),
    ("close", (), "because a thread of its host failed, as it does when code of"),
    ("exit", (), "ended by itself with exit code 3: code of the plugin has called System.exit"),
]


@cases("deed, options, expected", *ENDS, ids=[deed for deed, *_ in ENDS])
def test_reason_of_an_end(jar: str, deed: str, options: tuple[str, ...], expected: str) -> None:
    """The reason names the limit and does not depend on the exit code alone."""
    small = replace(SMALL, options=options)
    link = JavaLink(JavaProcess(find_installation({}), small), ANSWERS)
    link.begin(job(jar, "NumberSource"))
    link.call("start", config={"topic": "t", "deed": deed, "most": "10", "code": "3"})
    link.tell(FrameKind.CREDIT)
    link.tell(FrameKind.CREDIT)
    assert link.batches.get(timeout=WAIT_S) is None
    assert expected in str(link.ended())
    link.close()


FAILURES = [
    ("recurse", (), "java.lang.StackOverflowError\n\tat "),
    ("lack", (), "java.lang.OutOfMemoryError: thrown by the task\n\tat io.pyconnect.tests"),
    ("direct", ("-XX:MaxDirectMemorySize=1m",), "bytes of direct buffer memory (allocated: "),
    ("cut", (), "java.lang.IllegalStateException: cut at ?\n\tat io.pyconnect.tests"),
]


@cases("deed, options, expected", *FAILURES, ids=[deed for deed, *_ in FAILURES])
def test_errors_of_a_poll(jar: str, deed: str, options: tuple[str, ...], expected: str) -> None:
    """An Error that does not end the virtual machine is an ordinary failed poll."""
    small = replace(SMALL, options=options)
    link = JavaLink(JavaProcess(find_installation({}), small), ANSWERS)
    link.begin(job(jar, "NumberSource"))
    link.call("start", config={"topic": "t", "deed": deed, "most": "10"})
    assert expected in poll(link).batch.facts["error"]["trace"]
    link.close()


def test_process_that_is_killed(link: JavaLink, process: JavaProcess, jar: str) -> None:
    """Pending and later calls raise an error that says how the process ended."""
    link.begin(job(jar, "NumberSource"))
    psutil.Process(process.pid).send_signal(signal.SIGSTOP)
    waiting = link.send(FrameKind.STACKS)
    psutil.Process(process.pid).kill()
    for ask in (partial(link.answer, waiting), partial(link.call, "stop")):
        with pytest.raises(ConnectException, match=r"was killed by SIGKILL"):
            ask()
    assert link.has_ended


def test_noise_of_a_task(link: JavaLink, jar: str, caplog: pytest.LogCaptureFixture) -> None:
    """Lines of megabytes come in pieces, and bytes that are not text as escapes."""
    caplog.set_level(logging.INFO, "java.output")
    link.begin(job(jar, "NumberSource"))
    link.call("start", config={"topic": "t", "deed": "noise", "most": "10"})
    assert len(poll(link)) == 10

    def printed() -> str:
        return "".join(each.getMessage() for each in caplog.records)

    eventually(lambda: printed().endswith("\\xff"), WAIT_S, lambda: ascii(printed()[-100:]))
    assert printed().count("x" * 8_192) > 300


def test_stacks_of_a_process_that_does_not_answer(link: JavaLink, process: JavaProcess) -> None:
    """The answer comes in time and says why it has no stacks."""
    link.begin({"mode": "questions"})
    java = psutil.Process(process.pid)
    java.suspend()
    assert f"(pid {process.pid}) did not answer within 0.8 s: it is frozen" in link.stacks()
    java.resume()
    eventually(lambda: 'Java thread "main"' in link.stacks(), WAIT_S)
    java.kill()
    link.ended()
    assert "was killed by SIGKILL" in link.stacks()


def test_shutdown_hook_that_hangs(link: JavaLink, process: JavaProcess, jar: str) -> None:
    """System.exit waits for the hook; an end requested by the worker does not."""
    link.begin(job(jar, "NumberSource"))
    link.call("start", config={"topic": "t", "deed": "hook", "most": "10"})
    link.tell(FrameKind.CREDIT)
    eventually(lambda: 'Java thread "hanging-hook"' in link.stacks(), WAIT_S, link.stacks)
    link.close(WAIT_S)
    assert process.explain_end().startswith("The Java process ended by itself with exit code 0")


def test_programs_of_a_plugin_do_not_hide_the_end(
    link: JavaLink, process: JavaProcess, jar: str
) -> None:
    """The worker sees the end even if a program of the plugin keeps socket and output open."""
    link.begin(job(jar, "NumberSource"))
    link.call("start", config={"topic": "t", "deed": "spawn", "most": "10"})
    assert len(poll(link)) == 10
    java = psutil.Process(process.pid)
    (program,) = java.children()
    java.kill()
    try:
        assert link.batches.get(timeout=WAIT_S) is None
        assert "was killed by SIGKILL" in str(link.ended())
        assert program.is_running()
    finally:
        program.kill()


@cases("is_frozen", False, True)
def test_process_ends_with_its_parent(*, is_frozen: bool) -> None:
    """The process ends even if it is frozen and cannot see its socket close."""
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
