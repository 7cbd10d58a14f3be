"""Java tasks in an agent: their calls, their requests, their failures and their ends."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message

from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.agents.agent import Agent, Agents, java_processes
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.java_jars import test_connectors as compiled_connectors
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import create_topics, partitions_of, produce, read_topic

pytestmark = pytest.mark.java

WAIT_S = 150
PROVIDER = "org.apache.kafka.common.config.provider.FileConfigProvider"
SETTINGS = {
    "config.providers": "file",
    "config.providers.file.class": PROVIDER,
    "exactly.once.source.support": "enabled",
    "task.shutdown.graceful.timeout.ms": "5000",
    "agent.java.options": "-XX:+UseSerialGC -Dcom.sun.management.jmxremote.port=19999",
}
EXPRESSION = "pyconnect_agent.builtin.expressions.Expression"
FILE_SOURCE, FILE_SINK = (
    f"pyconnect_agent.builtin.connectors.file_stream.FileStream{kind}Connector"
    for kind in ("Source", "Sink")
)
MARKED = "io.pyconnect.tests.Marked"
LONGS = "org.apache.kafka.connect.converters.LongConverter"


@pytest.fixture(scope="module")
def agent(
    module_agents: Agents, kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory
) -> Agent:
    """An agent with exactly-once enabled and the connectors of `java_plugins`."""
    plugin_path = tmp_path_factory.mktemp("java") / "plugins"
    plugin_path.mkdir()
    compiled_connectors(kafka_runtime, plugin_path)
    return module_agents.start(properties={**SETTINGS, "plugin.path": str(plugin_path)})


class World:
    """The connector of one test, with its topic and its notes."""

    def __init__(self, agent: Agent, bootstrap_servers: str, directory: Path) -> None:
        self.agent = agent
        self.bootstrap_servers = bootstrap_servers
        self.name = unique_name("java")
        self.topic = unique_name("numbers")
        self.notes_file = directory / "notes"
        create_topics(bootstrap_servers, [self.topic])

    def source(self, **settings: str) -> None:
        self._create("io.pyconnect.tests.NumberSource", {"topic": self.topic}, settings)

    def sink(self, **settings: str) -> None:
        self._create("io.pyconnect.tests.NoteSink", {"topics": self.topic}, settings)

    def lines(self, *lines: str, **settings: str) -> None:
        """Create a Python source of the lines of a file; it writes no notes."""
        file = self.notes_file.with_name("lines")
        file.write_text("".join(f"{line}\n" for line in lines))
        self._create(FILE_SOURCE, {"file": str(file), "topic": self.topic}, settings)

    def lines_to(self, file: Path, **settings: str) -> None:
        self._create(FILE_SINK, {"file": str(file), "topics": self.topic}, settings)

    def numbers_of(self, transform: str) -> dict[str, Any]:
        """Return the metrics of one transformation, by name."""
        found = self.agent.get("/agent/metrics.json")
        return {
            each["name"]: each["value"]
            for each in found
            if each["tags"].get("connector") == self.name
            and each["tags"].get("transform") == transform
        }

    def _create(self, kind: str, own: Mapping[str, str], settings: Mapping[str, str]) -> None:
        config = {
            "connector.class": kind,
            "notes": str(self.notes_file),
            **own,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        self.agent.create(self.name, config)

    def records(self) -> list[Message]:
        return read_topic(self.bootstrap_servers, self.topic, committed=True)

    def values(self) -> list[str]:
        return [(record.value() or b"").decode() for record in self.records()]

    def notes(self) -> list[str]:
        return self.notes_file.read_text().splitlines() if self.notes_file.exists() else []

    def await_values(self, count: int) -> list[str]:
        return eventually(
            lambda: found if len(found := self.values()) >= count else None,
            WAIT_S,
            lambda: f"{self.values()}; {self.status()}",
        )

    def await_note(self, note: str) -> None:
        eventually(lambda: note in self.notes(), WAIT_S, lambda: f"{self.notes()}; {self.status()}")

    def status(self) -> Any:
        return self.agent.get(f"/connectors/{self.name}/status")

    def trace(self) -> str:
        """Return the trace of the task once it is FAILED."""
        self.agent.wait_for_states(self.name, "RUNNING", "FAILED")
        trace: str = self.status()["tasks"][0]["trace"]
        return trace

    def delete(self) -> None:
        self.agent.do("DELETE", f"/connectors/{self.name}")


@pytest.fixture
def world(agent: Agent, kafka_broker: SharedBroker, tmp_path: Path) -> Iterator[World]:
    made = World(agent, kafka_broker.bootstrap_servers, tmp_path)
    yield made
    made.delete()


def test_a_source_task_is_seen_in_kafka_in_metrics_and_in_stacks(world: World) -> None:
    """Key, value and headers are as the Java converters write them.

    MBeans are metrics in both formats, and the agent drops a JMX port from Java's options. The Java
    process's stacks, or the fact that it does not answer, follow the task's own.
    """
    world.source(limit="3", bean="b")
    world.await_values(3)
    record = world.records()[0]
    assert (record.key(), record.value()) == (b"key 0", b"number 0")
    assert record.headers() == [("header", b"of 0")]
    line = f'tests_numbers_Next{{connector="{world.name}",name="b",task="0"}} 3.0'
    eventually(
        lambda: line in world.agent.call("GET", "/agent/metrics").text.splitlines(),
        WAIT_S,
        lambda: world.agent.call("GET", "/agent/metrics").text[-2000:],
    )
    found = [each for each in world.agent.get("/agent/metrics.json") if each["group"] == "mbeans"]
    assert [(each["name"], each["value"]) for each in found] == [("tests_numbers_Next", 3)]

    def stacks() -> str:
        return world.agent.call("GET", f"/agent/tasks/{world.name}/0/stacks").text

    # At times the task is between two polls.
    java, python = "io.pyconnect.tests.NumberSource$Numbers.poll", "source_task.py"
    eventually(lambda: java in (text := stacks()) and python in text, WAIT_S, stacks)
    (frozen,) = java_processes(world.agent)[-1:]
    frozen.suspend()
    try:
        told = f"The Java process (pid {frozen.pid}) did not answer"
        eventually(lambda: told in (text := stacks()) and python in text, WAIT_S, stacks)
    finally:
        frozen.resume()


def test_topics_are_created_by_the_connectors_rules(world: World) -> None:
    topic = unique_name("made")
    rules = {
        "topic_creation_default_partitions": "3",
        "topic_creation_default_replication_factor": "1",
    }
    world.source(limit="1", topic=topic, **rules)
    world.await_note("key 0 at 0")
    assert partitions_of(world.bootstrap_servers, topic) == [0, 1, 2]


def test_source_hears_of_its_records(world: World) -> None:
    """`commitRecord` gets each sent record with its place in Kafka and each dropped one without."""
    world.source(
        limit="10",
        transforms="drop",
        transforms_drop_type="org.apache.kafka.connect.transforms.Filter",
        transforms_drop_predicate="tombstone",
        predicates="tombstone",
        predicates_tombstone_type="org.apache.kafka.connect.transforms.predicates.HasHeaderKey",
        predicates_tombstone_name="nothing",
    )
    world.await_note("key 9 at 10")
    told = [note for note in world.notes() if note.startswith("key")]
    assert told == [f"key {n} at {n + n // 5}" for n in range(10)]
    assert world.notes()[0] == "start 0"
    eventually(lambda: world.notes()[-1] == "commit", WAIT_S, world.notes)


def test_transaction_boundaries_of_the_connector(world: World) -> None:
    """The task decides which records are committed and which are aborted."""
    world.source(limit="10", transaction_boundary="connector", most="1", pause="200")
    found = world.await_values(6)
    # The transaction of 4 and 5 was aborted, and that of 8 and 9 is still open.
    assert found == [f"number {n}" for n in (0, 1, 2, 3, 6, 7)]


def test_offsets_are_read_by_the_next_task_and_altered(world: World) -> None:
    """The Java connector accepts the change, and its next task continues at the new offset."""
    world.source(limit="10")
    world.await_values(10)
    world.agent.do("POST", f"/connectors/{world.name}/tasks/0/restart")
    world.await_note("start 10")
    assert "stop" in world.notes()
    world.agent.do("PUT", f"/connectors/{world.name}/stop")
    world.agent.wait_for_states(world.name, "STOPPED")
    path = f"/connectors/{world.name}/offsets"
    change = {"offsets": [{"partition": {"place": "here"}, "offset": {"number": 3}}]}
    answer = world.agent.ask("PATCH", path, change)
    assert "have been altered successfully" in answer.text
    world.agent.do("PUT", f"/connectors/{world.name}/resume")
    world.await_note("start 4")
    assert world.await_values(16)[10:] == [f"number {n}" for n in range(4, 10)]


def test_offsets_of_a_sink(world: World) -> None:
    """The group's offsets can be read, and altered while the sink is stopped."""
    produce(world.bootstrap_servers, world.topic, b"one", b"two", b"three")
    world.sink()
    path = f"/connectors/{world.name}/offsets"
    partition = {"kafka_topic": world.topic, "kafka_partition": 0}

    def offsets() -> object:
        answer = world.agent.call("GET", path)
        return answer.json()["offsets"] if answer.status == 200 else answer.text

    eventually(
        lambda: offsets() == [{"partition": partition, "offset": {"kafka_offset": 3}}],
        WAIT_S,
        offsets,
    )
    world.agent.do("PUT", f"/connectors/{world.name}/stop")
    world.agent.wait_for_states(world.name, "STOPPED")
    change = {"offsets": [{"partition": partition, "offset": {"kafka_offset": 1}}]}
    world.agent.do("PATCH", path, change)
    assert offsets() == change["offsets"]
    world.agent.do("PUT", f"/connectors/{world.name}/resume")
    eventually(lambda: world.notes().count("2 null=three") == 2, WAIT_S, world.notes)
    assert [world.notes().count(note) for note in ("0 null=one", "1 null=two")] == [1, 2]


@cases(
    "deed, expected",
    ("throw", "java.lang.IllegalStateException: thrown by the task\n\tat io.pyconnect.tests"),
    ("exit", "The Java process ended by itself with exit code 7"),
    ("memory", "its heap is limited to 64m (-Xmx64m)"),
)
def test_task_that_fails(world: World, deed: str, expected: str) -> None:
    """The trace says why the task failed; the connector and the worker go on."""
    world.source(limit="10", deed=deed, agent_java_heap="64m")
    assert expected in world.trace()
    assert world.values() == [f"number {n}" for n in range(5)]


def test_record_above_the_largest_request(world: World) -> None:
    """The record fails the task with its size and topic, as in a Python task."""
    world.source(limit="1", padding="2000000")
    assert f"bytes (key, value and headers) for topic '{world.topic}'" in world.trace()


def test_failed_conversion_fails_the_task(world: World) -> None:
    world.source(limit="10", deed="bad", value_converter=LONGS)
    trace = world.trace()
    assert "Tolerance exceeded in error handler" in trace
    assert f"Stage VALUE_CONVERTER of class {LONGS} failed" in trace
    assert "Caused by: org.apache.kafka.connect.errors.DataException" in trace
    assert len(world.records()) == 0


def test_failed_conversions_are_skipped(world: World) -> None:
    """With errors.tolerance=all the record is dropped, and the others arrive."""
    world.source(limit="10", deed="bad", value_converter=LONGS, errors_tolerance="all")
    world.await_note("key 9 at 8")
    found = [int.from_bytes(record.value() or b"") for record in world.records()]
    assert found == [0, 1, 2, 4, 5, 6, 8, 9]
    assert "key 7 dropped" in world.notes()


def test_a_python_transformation_between_java_ones(world: World) -> None:
    """The transformation drops and changes records; a record that fails in it is skipped."""
    transforms = "org.apache.kafka.connect.transforms"
    world.source(
        limit="1200",
        errors_tolerance="all",
        transforms="hoist, python, extract",
        transforms_hoist_type=f"{transforms}.HoistField$Value",
        transforms_hoist_field="number",
        transforms_python_type="Expression",
        transforms_python_filter="key == 'key 2' ? value.gone : key != 'key 1'",
        transforms_python_set_value="{'number': value.number + '!'}",
        transforms_extract_type=f"{transforms}.ExtractField$Value",
        transforms_extract_field="number",
    )
    values = world.await_values(1198)
    assert values == [f"number {number}!" for number in (0, *range(3, 1200))]
    assert {"key 1 dropped", "key 2 dropped"} <= {*world.notes()}
    hoist, python, extract = map(world.numbers_of, ("hoist", "python", "extract"))
    assert python["transform-class"] == EXPRESSION
    assert hoist["transform-class"] == f"{transforms}.HoistField$Value"
    assert counts(hoist) == (1200, 1200, 0, 0)
    assert counts(python) == (1200, 1198, 1, 1)
    assert counts(extract) == (1198, 1198, 0, 0)
    assert min(each["transform-record-avg-time-us"] for each in (hoist, python, extract)) > 0


def counts(numbers: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return how many records came in, went out, were dropped and failed."""
    ends = ("in", "out", "dropped", "failed")
    return tuple(numbers[f"transform-record-{end}-total"] for end in ends)


def test_java_transformations_of_a_python_source(world: World) -> None:
    """A chain that switches sides twice keeps order, predicates, retries, failures and counts.

    The predicate is in no list of plugins.
    """
    odd = ["bad", "gone", "again", "in place", "same", "plain"]
    world.lines(
        *(f"{number}" for number in range(1100)),
        *odd,
        errors_tolerance="all",
        errors_retry_timeout="60000",
        transforms="first, java, last",
        transforms_first_type="Expression",
        transforms_first_filter="value != '7'",
        transforms_java_type="Marked",
        transforms_java_plugin_version="[2,3)",
        transforms_java_mark="!",
        transforms_java_predicate="wanted",
        transforms_last_type="HoistField$Value",
        transforms_last_field="f",
        predicates="wanted",
        predicates_wanted_type=f"{MARKED}$NotPlain",
    )
    values = world.await_values(1100 - 1 + 4)
    texts = [f"{number}!" for number in range(1100) if number != 7]
    assert values == [
        f"Struct{{f={text}}}" for text in (*texts, "again!", "in place", "same", "plain")
    ]
    headers = [record.headers() for record in world.records() if record.headers()]
    assert headers == [[("mark", b"!")]]
    first, java, last = map(world.numbers_of, ("first", "java", "last"))
    assert counts(first) == (1106, 1105, 1, 0)
    assert counts(java) == (1105, 1103, 1, 1)
    assert counts(last) == (1103, 1103, 0, 0)
    assert (java["transform-class"], java["transform-version"]) == (MARKED, "2.1")
    assert min(each["transform-record-avg-time-us"] for each in (first, java, last)) > 0


def test_a_failed_java_transformation_of_a_python_source_fails_the_task(world: World) -> None:
    """The trace has the stage, the class and Java's trace; validation asks the Java class too."""
    config = {"name": "n", "connector.class": FILE_SOURCE, "topic": "t", "transforms": "t"}
    config |= {"transforms.t.type": "Marked", "transforms.t.mark": ""}
    infos = world.agent.call(
        "PUT", f"/connector-plugins/{FILE_SOURCE}/config/validate", config
    ).json()
    values = {each["value"]["name"]: each["value"] for each in infos["configs"]}
    assert values["transforms.t.mark"]["errors"] == [
        "Invalid value  for configuration mark: String must be non-empty"
    ]
    assert infos["error_count"] == 1
    world.lines("good", "bad", transforms="t", transforms_t_type=MARKED, transforms_t_mark="!")
    trace = world.trace()
    assert f"Stage TRANSFORMATION of class {MARKED} failed" in trace
    assert "DataException: thrown by Marked\n\tat io.pyconnect.tests.Marked.apply" in trace


def test_a_python_task_fails_with_its_java_process(world: World) -> None:
    """The task fails even without records; a restart starts both processes and loses nothing."""
    world.lines("one", transforms="t", transforms_t_type=MARKED, transforms_t_mark="!")
    world.await_values(1)
    java_processes(world.agent)[-1].kill()
    assert "was killed" in world.trace()
    with world.notes_file.with_name("lines").open("a") as file:
        file.write("two\n")
    world.agent.do("POST", f"/connectors/{world.name}/tasks/0/restart")
    assert world.await_values(2) == ["one!", "two!"]


def test_a_failed_python_transformation_fails_the_task(world: World) -> None:
    """The trace has the stage, the class and the error, as with a Python connector."""
    world.source(
        limit="3", transforms="t", transforms_t_type="Expression", transforms_t_filter="value.gone"
    )
    trace = world.trace()
    assert f"Stage TRANSFORMATION of class {EXPRESSION} failed" in trace
    assert "the record has no value.gone" in trace
    assert len(world.records()) == 0


def test_output_and_log_lines_of_a_task_reach_the_workers_log(world: World) -> None:
    """Standard output and SLF4J are in the worker's log with connector and task."""
    world.source(limit="10", deed="print")
    world.await_values(10)
    lines = [line for line in world.agent.log().splitlines() if world.name in line]
    (printed,) = [line for line in lines if "printed by the task" in line]
    assert f"task={world.name}-0" in printed


def test_secrets_are_hidden(world: World, tmp_path: Path) -> None:
    """Values of config providers are hidden in traces, in log lines and on the command line."""
    file = tmp_path / "secrets.properties"
    file.write_text("password=of-a-provider\n")
    reference = f"${{file:{file}:password}}"
    world.source(
        limit="10",
        deed="reveal",
        secret=reference,
        agent_java_options=f"-Dpassword={reference}",
        agent_connector_sleep="false",
    )
    trace = world.trace()
    assert "java.lang.IllegalStateException: outer\n\tat io.pyconnect.tests" in trace
    assert f"\tSuppressed: java.lang.IllegalStateException: suppressed {reference}\n" in trace
    assert f"Caused by: java.lang.IllegalStateException: {reference}\n" in trace

    def is_told(text: str) -> bool:
        lines = [line for line in world.agent.log().splitlines() if world.name in line]
        return any(f"{text} {reference}" in line for line in lines)

    eventually(lambda: is_told("printed") and is_told("logged"), WAIT_S)
    assert "of-a-provider" not in trace + world.agent.log()
    eventually(lambda: len(java_processes(world.agent)) == 1, WAIT_S)
    assert "of-a-provider" not in " ".join(java_processes(world.agent)[0].cmdline())


def test_levels_change_at_run_time(world: World) -> None:
    """A level that is set over REST applies in the Java process too."""
    world.source(limit="7", deed="debug")
    world.await_values(7)
    logger = "io.pyconnect.tests"
    world.agent.do("PUT", f"/admin/loggers/{logger}", {"level": "DEBUG"})
    config = world.agent.get(f"/connectors/{world.name}/config")
    world.agent.do("PUT", f"/connectors/{world.name}/config", {**config, "limit": "10"})
    world.await_values(10)
    assert "told in detail by the task" in world.agent.log()


def test_level_of_the_root_logger_is_that_of_all_known_ones(world: World) -> None:
    """The root's level replaces levels that loggers had of their own, as in Kafka's worker."""
    world.agent.do("PUT", "/admin/loggers/io.pyconnect.tests", {"level": "OFF"})
    world.agent.do("PUT", "/admin/loggers/root", {"level": "WARN"})
    try:
        world.source(limit="10", deed="debug")
        world.await_values(10)
        lines = [line for line in world.agent.log().splitlines() if world.name in line]
        (told,) = [line for line in lines if "told in" in line]
        assert " WARN told in short by the task " in told
    finally:
        world.agent.do("PUT", "/admin/loggers/root", {"level": "INFO"})


def test_sink_calls(world: World) -> None:
    """The task is opened, flushed at its request, closed and stopped."""
    world.sink()
    produce(
        world.bootstrap_servers, world.topic, b"commit", key=b"k", headers=[("header", b"text")]
    )
    world.await_note("0 k=commit ConnectHeader(key=header, value=text, schema=Schema{STRING})")
    world.await_note("flush 1")
    assert world.agent.call("PUT", f"/connectors/{world.name}/stop").status == 204
    world.await_note("stop")
    assert world.notes()[1] == f"open [{world.topic}-0] of [{world.topic}-0]"
    assert world.notes()[-2:] == ["close 1", "stop"]


def test_sink_that_asks_again(world: World) -> None:
    """A batch that raises RetriableException is put again unchanged."""
    produce(world.bootstrap_servers, world.topic, b"one", b"again", b"three")
    world.sink()
    world.await_note("2 null=three")
    assert [note for note in world.notes() if "=" in note] == [
        "0 null=one",
        "0 null=one",
        "1 null=again",
        "2 null=three",
    ]


def test_sink_that_rewinds(world: World) -> None:
    produce(world.bootstrap_servers, world.topic, b"one", b"rewind")
    world.sink()
    eventually(lambda: world.notes().count("0 null=one") == 2, WAIT_S, world.notes)


def test_sink_that_chooses_where_it_begins(world: World) -> None:
    """Offsets that the task sets in `open` apply from the first record on."""
    produce(world.bootstrap_servers, world.topic, b"zero", b"one", b"two")
    world.sink(openAt="1")
    world.await_note("2 null=two")
    assert [note for note in world.notes() if "=" in note] == ["1 null=one", "2 null=two"]


def test_sink_that_pauses_a_partition(world: World) -> None:
    """The task gets no records of the partition until it resumes it, and is still called."""
    produce(world.bootstrap_servers, world.topic, b"pause")
    world.sink()
    world.await_note("waits")
    produce(world.bootstrap_servers, world.topic, b"late")
    before = world.notes().count("waits")
    eventually(lambda: world.notes().count("waits") > before + 10, WAIT_S, world.notes)
    assert "1 null=late" not in world.notes()
    world.notes_file.with_name("notes.resume").touch()
    world.await_note("1 null=late")
    notes = world.notes()
    assert "got records of what is paused" not in notes
    assert notes.index("resume") < notes.index("1 null=late")


def test_sink_that_throws(world: World) -> None:
    produce(world.bootstrap_servers, world.topic, b"throw")
    world.sink()
    trace = world.trace()
    assert "Exiting WorkerSinkTask due to unrecoverable exception." in trace
    assert "Caused by: java.lang.IllegalArgumentException: thrown by put\n\tat io.pyc" in trace


def test_dead_letter_queue(world: World) -> None:
    """Records that fail in a Java converter and records reported by the task go to the queue."""
    queue = unique_name("queue")
    produce(world.bootstrap_servers, world.topic, b'"good"', b"{bad", b'"errant"', key=b"k")
    world.sink(
        value_converter="org.apache.kafka.connect.json.JsonConverter",
        value_converter_schemas_enable="false",
        errors_tolerance="all",
        errors_deadletterqueue_topic_name=queue,
        errors_deadletterqueue_topic_replication_factor="1",
        errors_deadletterqueue_context_headers_enable="true",
    )
    world.await_note("2 k=errant")
    eventually(lambda: len(read_topic(world.bootstrap_servers, queue)) == 2, WAIT_S)
    found = read_topic(world.bootstrap_servers, queue)
    # Reports of the task come before the failures of its batch.
    found.sort(key=lambda record: record.value() == b'"errant"')
    assert [record.value() for record in found] == [b"{bad", b'"errant"']
    contexts = [dict(record.headers() or ()) for record in found]
    stages = [context["__connect.errors.stage"] for context in contexts]
    assert stages == [b"VALUE_CONVERTER", b"TASK_PUT"]
    classes = [context["__connect.errors.class.name"] for context in contexts]
    assert classes == [
        b"org.apache.kafka.connect.json.JsonConverter",
        b"org.apache.kafka.connect.sink.SinkTask",
    ]
    errors = [context["__connect.errors.exception.class.name"] for context in contexts]
    assert errors == [
        b"org.apache.kafka.connect.errors.DataException",
        b"java.lang.IllegalStateException",
    ]


def test_dead_letters_of_a_python_transformation(world: World) -> None:
    """The headers are those of a Python connector; the other records reach the Java task."""
    queue = unique_name("queue")
    produce(world.bootstrap_servers, world.topic, b"good", b"bad", b"other", key=b"k")
    world.sink(
        transforms="t",
        transforms_t_type="Expression",
        transforms_t_filter="value == 'bad' ? value.gone : true",
        transforms_t_topic="topic + '!'",
        errors_tolerance="all",
        errors_deadletterqueue_topic_name=queue,
        errors_deadletterqueue_topic_replication_factor="1",
        errors_deadletterqueue_context_headers_enable="true",
    )
    world.await_note("2 k=other")
    assert "0 k=good" in world.notes()
    eventually(lambda: len(read_topic(world.bootstrap_servers, queue)) == 1, WAIT_S)
    (letter,) = read_topic(world.bootstrap_servers, queue)
    context = dict(letter.headers() or ())
    assert letter.value() == b"bad"
    assert context["__connect.errors.stage"] == b"TRANSFORMATION"
    assert context["__connect.errors.class.name"] == EXPRESSION.encode()
    expected = b"pyconnect_api.errors.DataException"
    assert context["__connect.errors.exception.class.name"] == expected


def test_dead_letters_of_a_java_transformation(world: World, tmp_path: Path) -> None:
    """With a Python sink, the headers are those of a Java connector; other records are written."""
    queue, file = unique_name("queue"), tmp_path / "written"
    produce(world.bootstrap_servers, world.topic, b"good", b"bad", b"other", key=b"k")
    world.lines_to(
        file,
        transforms="route, t",
        transforms_route_type="Expression",
        transforms_route_topic="topic + '!'",
        transforms_t_type=MARKED,
        transforms_t_mark="!",
        errors_tolerance="all",
        errors_deadletterqueue_topic_name=queue,
        errors_deadletterqueue_topic_replication_factor="1",
        errors_deadletterqueue_context_headers_enable="true",
    )
    eventually(lambda: len(read_topic(world.bootstrap_servers, queue)) == 1, WAIT_S, world.status)
    eventually(lambda: file.read_text() == "good!\nother!\n", WAIT_S, world.status)
    (letter,) = read_topic(world.bootstrap_servers, queue)
    context = dict(letter.headers() or ())
    assert letter.value() == b"bad"
    assert context["__connect.errors.topic"] == world.topic.encode()
    assert context["__connect.errors.stage"] == b"TRANSFORMATION"
    assert context["__connect.errors.class.name"] == MARKED.encode()
    expected = b"org.apache.kafka.connect.errors.DataException"
    assert context["__connect.errors.exception.class.name"] == expected
    assert counts(world.numbers_of("t")) == (3, 2, 0, 1)


def test_connector_that_raises_an_error(world: World) -> None:
    world.source(deed="raise")
    eventually(lambda: world.agent.states(world.name)[:1] == ("FAILED",), WAIT_S, world.status)
    assert "IllegalStateException: raised by the conn" in world.status()["connector"]["trace"]


def test_a_connectors_monitor_may_request_other_tasks(world: World, tmp_path: Path) -> None:
    """A thread of the connector requests new task configs and later raises an error."""
    wish = tmp_path / "wish"
    world.source(wish=str(wish), tasks_max="3")
    world.agent.wait_for_states(world.name, "RUNNING", "RUNNING")
    wish.write_text("3")
    world.agent.wait_for_states(world.name, *["RUNNING"] * 4)
    wish.write_text("2")
    world.agent.wait_for_states(world.name, *["RUNNING"] * 3)
    wish.write_text("raise")
    world.agent.wait_for_states(world.name, "FAILED", "RUNNING", "RUNNING")
    trace = world.status()["connector"]["trace"]
    assert "java.lang.IllegalStateException: raised by the monitor\n\tat io.pyconnect" in trace


def test_an_idle_connector_sleeps_and_one_with_a_monitor_does_not(
    world: World, tmp_path: Path
) -> None:
    """An idle connector has no Java process apart from its task's; a new config wakes it up."""
    watched, wish = unique_name("java"), tmp_path / "wish"
    config = {"connector.class": "io.pyconnect.tests.NumberSource", "topic": world.topic}
    world.agent.create(watched, {**config, "wish": str(wish), "tasks.max": "2"})
    world.agent.wait_for_states(watched, "RUNNING", "RUNNING")
    world.source(limit="1")

    def asleep() -> list[str]:
        works = world.agent.get("/agent/tasks")
        return [work["connector"] for work in works if work["asleep"]]

    eventually(lambda: asleep() == [world.name], WAIT_S, asleep)
    eventually(lambda: len(java_processes(world.agent)) == 3, WAIT_S)
    world.agent.do("PATCH", f"/connectors/{world.name}/config", {"limit": "3"})
    assert world.await_values(3)
    eventually(lambda: asleep() == [world.name], WAIT_S, asleep)
    wish.write_text("2")
    world.agent.wait_for_states(watched, *["RUNNING"] * 3)
    world.agent.do("DELETE", f"/connectors/{watched}")


def test_a_sink_and_its_connector_fail_when_their_processes_are_killed(world: World) -> None:
    """Both fail at once, even with no records, no commit due and no call under way."""
    world.sink(agent_connector_sleep="false")
    world.await_note(f"open [{world.topic}-0] of [{world.topic}-0]")
    connector, task = java_processes(world.agent)
    task.kill()
    assert "was killed by SIGKILL" in world.trace()
    connector.kill()
    world.agent.wait_for_states(world.name, "FAILED", "FAILED")
    assert "was killed by SIGKILL" in world.status()["connector"]["trace"]


def test_a_paused_source_fails_when_its_process_is_killed(world: World) -> None:
    """The task fails at once although the worker does not poll it."""
    world.source(limit="5")
    world.await_values(5)
    world.agent.do("PUT", f"/connectors/{world.name}/pause")
    world.agent.wait_for_states(world.name, "PAUSED", "PAUSED")
    java_processes(world.agent)[-1].kill()
    world.agent.wait_for_states(world.name, "PAUSED", "FAILED")
    assert "was killed by SIGKILL" in world.status()["tasks"][0]["trace"]


def test_memory_limit_counts_the_java_process(world: World) -> None:
    """The Python process alone would be far below the limit."""
    world.source(limit="10", deed="hold", agent_limit_memory_bytes=str(150 << 20))
    assert "agent.limit.memory.bytes is 157286400." in world.trace()
