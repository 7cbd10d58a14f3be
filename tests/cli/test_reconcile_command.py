"""`pyconnect reconcile` before Spark starts: specs, and requests that are refused."""

import json
from pathlib import Path

import pytest

from pyconnect_cli.errors import ServerError
from pyconnect_cli.reconcile import spark_jars
from pyconnect_cli.reconcile.run import ProcessEnd, SparkRefusal, uses_avro
from pyconnect_clients.installation import install_command
from pyconnect_reconcile.data_sides import FileSide
from pyconnect_reconcile.spec import Registry, TopicSide, read_spec
from tests.cli.conftest import Run
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect, FakeConnector

KAFKA = ("--kafka-bootstrap", "b:9092", "--print-spec", "-o", "json")
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"


def test_a_source_is_resolved_with_its_committed_offset(run: Run, connect: FakeConnect) -> None:
    """A source's file, topic and format come from the connector, and the end from its offset."""
    connect.connectors["lines"] = FakeConnector(
        config={
            "name": "lines", "connector.class": SOURCE, "file": "/data/in.txt", "topic": "lines",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter"
        },
        offsets=[{"partition": {"filename": "/data/in.txt"}, "offset": {"position": 1234}}],
    )  # fmt: skip
    outcome = run("reconcile", "source-topic", "lines", *KAFKA, code=0)
    spec = read_spec(json.loads(outcome.out))
    assert spec.left == FileSide(paths=("/data/in.txt",), format="text", limit_bytes=1234)
    assert isinstance(spec.right, TopicSide)
    assert spec.right.value == "connect-json"


def test_a_sink_is_resolved_with_offsets_and_dead_letters(run: Run, connect: FakeConnect) -> None:
    """Committed offsets bound a sink's topics, and its dead letters count as arrived."""
    connect.connectors["out"] = FakeConnector(
        type="sink",
        config={
            "name": "out", "connector.class": SINK, "file": "/data/out.txt", "topics": "a, b",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "errors.deadletterqueue.topic.name": "dead"
        },
        offsets=[
            {"partition": {"kafka_topic": "a", "kafka_partition": 0}, "offset": {"kafka_offset": 7}}
        ],
    )  # fmt: skip
    outcome = run("reconcile", "topic-sink", "out", *KAFKA, code=0)
    spec = read_spec(json.loads(outcome.out))
    assert spec.left == TopicSide(topics=("a", "b"))
    assert spec.arrived == TopicSide(topics=("dead",), connector="out")
    assert "dead letters without headers do not name their connector" in spec.notes[0]
    assert spec.until == {"a": {0: 7}, "b": {}}


def test_an_avro_sink_has_its_registry(run: Run, connect: FakeConnect, tmp_path: Path) -> None:
    """The converter gives format and registry; credentials of the registry are not copied."""
    connect.connectors["out"] = FakeConnector(
        type="sink",
        config={
            "name": "out", "connector.class": "com.example.Sink", "topics": "a",
            "value.converter": "io.confluent.connect.avro.AvroConverter",
            "value.converter.schema.registry.url": "http://registry:8081",
            "value.converter.basic.auth.user.info": "me:hunter2"
        },
        offsets=[],
    )  # fmt: skip
    files = ("--files", "/data/out.parquet", "--registry-properties", str(tmp_path / "r"))
    outcome = run("reconcile", "topic-sink", "out", *files, *KAFKA, code=0)
    document = json.loads(outcome.out)
    spec = read_spec(document)
    assert spec.left == TopicSide(topics=("a",), value="avro")
    url, properties = "http://registry:8081", str(tmp_path / "r")
    assert spec.registries == {"main": Registry(url=url, properties=properties)}
    assert "hunter2" not in outcome.out
    assert uses_avro(document)
    other = ("--registry", "http://other:1", "--value", "json")
    document = json.loads(run("reconcile", "topic-sink", "out", *files, *other, *KAFKA).out)
    assert document["registries"]["main"]["url"] == "http://other:1"
    assert not uses_avro(document)


@cases(
    "document",
    {"right": {"value": "avro"}},
    {"sequence": "avro:id"},
    {"key": "avro:id"},
    {"tiers": [{"side": {"value": "bytes"}, "event_time": "avro:at"}]},
)
def test_spark_can_read_avro_where_a_spec_asks_for_it(document: dict[str, object]) -> None:
    """The Avro jar is needed only if the spec has values or fields in Avro."""
    assert uses_avro(document)
    assert not uses_avro({"sequence": "json:avro", "left": {"value": "json"}})


def test_internal_topics_and_the_order_of_keys_are_options(run: Run) -> None:
    """The internal topics of `offsets` are options, and `topic-topic` ignores order by default."""
    flags = ("--config-topic", "configs", "--status-topic", "statuses")
    outcome = run("reconcile", "offsets", *flags, *KAFKA, code=0)
    offsets = read_spec(json.loads(outcome.out)).offsets
    assert offsets is not None
    expected = ("connect-offsets", "configs", "statuses")
    assert (offsets.worker, offsets.config, offsets.status) == expected
    for flags, ordered in (((), False), (("--ordered",), True)):
        outcome = run("reconcile", "topic-topic", "a", "b", *flags, *KAFKA)
        assert read_spec(json.loads(outcome.out)).ordered is ordered


def test_a_source_without_an_offset_is_not_compared(run: Run, connect: FakeConnect) -> None:
    """A source without an offset is refused, because every record would look like lag."""
    config: dict[str, str | None] = {"connector.class": SOURCE, "file": "/f", "topic": "t"}
    connect.connectors["new"] = FakeConnector(config={"name": "new", **config})
    assert "no offset of /f yet" in run("reconcile", "source-topic", "new", *KAFKA, code=11).err


def test_flags_win_over_a_spec_and_that_over_the_resolved(run: Run, tmp_path: Path) -> None:
    """Options win over the spec file, and the spec file wins over resolved members."""
    file = tmp_path / "spec.yaml"
    file.write_text("topics: [other]\nfindings: 5\nidentity: key\nspark: {conf: {a: 1, b: 2}}\n")
    outcome = run(
        "reconcile", "duplicates", "t", "--spec", str(file), "--findings", "9",
        "--conf", "b=3", "--master", "local[1]", *KAFKA,
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    spec = read_spec(json.loads(outcome.out))
    assert (spec.topics, spec.findings, spec.identity) == (("other",), 9, "key")
    assert spec.spark.conf == {"a": "1", "b": "3"}
    assert spec.spark.master == "local[1]"


def test_credentials_are_named_not_copied(run: Run, tmp_path: Path) -> None:
    """The spec holds the path of the client properties, never their content."""
    properties = tmp_path / "client.properties"
    properties.write_text('sasl.jaas.config=x password="hunter2";\n')
    outcome = run("reconcile", "ranges", "t", "--kafka-properties", str(properties), *KAFKA, code=0)
    assert json.loads(outcome.out)["clusters"]["main"]["properties"] == str(properties)
    assert "hunter2" not in outcome.out + outcome.err


@cases(
    "arguments, code, message",
    (("duplicates",), 2, "name a topic"),
    (("duplicates", "t", "--connector", "c"), 2, "not both"),
    (("duplicates", "--connector", "nobody"), 3, "nobody"),
    (("sequence", "t"), 2, "the place of the sequence number is not given"),
    (("source-topic",), 2, "there is nothing to compare"),
    (("topic-sink", "orders"), 2, "orders is a source, not a sink"),
    (("duplicates", "t", "--findings", "0"), 2, "not a number of findings"),
    (("duplicates", "t", "--since", "soon"), 2, "`soon` is not a time"),
    (("duplicates", "t", "--conf", "x"), 2, "not KEY=VALUE"),
    (("duplicates", "t", "--spec", "/nowhere"), 2, "cannot be read"),
    (("completeness", "--tier", "x"), 2, "is not NAME=topic:TOPIC"),
)
def test_impossible_audits_are_refused(
    run: Run, arguments: tuple[str, ...], code: int, message: str
) -> None:
    """An audit that is not possible is refused with a message and without a traceback."""
    outcome = run("reconcile", *arguments, "--kafka-bootstrap", "b:9092")
    assert (outcome.code, message in outcome.err) == (code, True), outcome.err
    assert "Traceback" not in outcome.err


def test_what_an_audit_lacks_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing brokers or a missing Spark are exit 9 with the option or command that helps."""
    assert "--kafka-bootstrap" in run("reconcile", "duplicates", "t", code=9).err
    monkeypatch.setattr(spark_jars, "find_spec", lambda name: None)
    outcome = run("reconcile", "duplicates", "t", "--kafka-bootstrap", "b:9092", code=9)
    assert install_command("reconcile") in outcome.err


def test_without_java_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Java the hint is the command that installs it."""
    with pytest.raises(spark_jars.PreconditionFailed, match="Spark needs Java 17") as caught:
        spark_jars.require_java({"PATH": "/nowhere"})
    assert "install it" in (caught.value.hint or "")


def test_an_audit_that_ends_in_an_error_has_failed_in_the_summary(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The summary has the audit as failed when the Spark process ends with an error."""

    def fail(*_: object) -> int:
        raise ServerError("the Spark process ended")

    monkeypatch.setattr("pyconnect_cli.reconcile.run._run", fail)
    outcome = run("reconcile", "ranges", "t", "--summary-json", "--kafka-bootstrap", "127.0.0.1:1")
    (result,) = json.loads(outcome.out)["results"]
    assert (result["name"], result["outcome"]) == ("t", "failed")
    assert result["error"] == "the Spark process ended"


def test_two_runs_do_not_share_a_report(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with --since-last of the same target is exit 6 while another one continues."""
    command = ("reconcile", "duplicates", "--since-last", "--kafka-bootstrap", "127.0.0.1:1")
    codes = []

    def meanwhile(*_: object) -> int:
        if not codes:
            codes.append(0)
            codes.append(run(*command, "t").code)
            codes.append(run(*command, "other").code)
        raise ServerError("the Spark process ended")

    monkeypatch.setattr("pyconnect_cli.reconcile.run._run", meanwhile)
    assert run(*command, "t").code == 10
    assert codes == [0, 6, 10]
    spec = json.loads(run(*command, "t", "--print-spec", "-o", "json").out)
    assert (spec["since_last"], spec["earlier"]) == (True, [])


def two_sinks(connect: FakeConnect) -> None:
    for name in ("one", "two"):
        config = {"name": name, "connector.class": SINK, "file": f"/{name}", "topics": "t"}
        connect.connectors[name] = FakeConnector(type="sink", config=config)


def test_several_connectors_have_a_spec_each(run: Run, connect: FakeConnect) -> None:
    """Each named connector has its own spec, once."""
    two_sinks(connect)
    outcome = run("reconcile", "topic-sink", "one", "two", "one", *KAFKA, code=0)
    specs = [read_spec(document) for document in json.loads(outcome.out)]
    expected = [(name, FileSide(paths=(f"/{name}",), format="text")) for name in ("one", "two")]
    assert [(spec.target, spec.right) for spec in specs] == expected


@cases("option", "--topic", "--files", "--table", "--spec", "--ranges")
def test_options_of_one_fail_for_several(run: Run, connect: FakeConnect, option: str) -> None:
    """Options of a single connector are refused for several connectors."""
    two_sinks(connect)
    outcome = run("reconcile", "topic-sink", "one", "two", option, "x", *KAFKA, code=2)
    assert f"{option} applies to a single connector" in outcome.err


@cases(
    "verdicts, code",
    (("agree", "agree"), 0),
    ((None, "differ"), 1),
    (("agree", None), 11),
    (("unknown", ""), 11),
)
def test_several_audits_run_in_one_process_with_a_report_each(
    run: Run,
    connect: FakeConnect,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    verdicts: tuple[str | None, str | None],
    code: int,
) -> None:
    """A difference is exit 1, and an audit without an answer is named and stops no other one."""
    two_sinks(connect)
    started: list[dict[Path, Path]] = []

    def process(runs: dict[Path, Path], *_: object) -> ProcessEnd:
        started.append(dict(runs))
        refusals: dict[str | None, SparkRefusal] = {}
        for (spec, directory), verdict in zip(runs.items(), verdicts, strict=True):
            assert json.loads(spec.read_text())["target"] in directory.name
            if not verdict:
                refusals[str(directory)] = SparkRefusal(message="no answer", hint=None)
                continue
            directory.mkdir(parents=True)
            report = {"job": "topic-sink", "target": "x", "verdict": verdict, "duration_ms": 1}
            report |= {"counts": {}, "findings": [], "findings_kept": 0}
            (directory / "report.json").write_text(json.dumps(report))
        return ProcessEnd(exit_code=0, refusals=refusals)

    monkeypatch.setattr("pyconnect_cli.reconcile.run.run_process", process)
    monkeypatch.setattr("pyconnect_cli.reconcile.run._prepare_spark", lambda *_: None)
    monkeypatch.setattr("pyconnect_cli.reconcile.run.shutil.copyfile", lambda *_: None)
    outcome = run(
        "reconcile", "topic-sink", "one", "two", "--kafka-bootstrap", "b:9092", "-o", "json",
        "--report", str(tmp_path / "reports"),
    )  # fmt: skip
    assert outcome.code == code, outcome.err
    (runs,) = started
    directories = [tmp_path / "reports" / f"topic-sink-{name}" for name in ("one", "two")]
    assert list(runs.values()) == directories
    assert [report["verdict"] for report in json.loads(outcome.out)] == list(filter(None, verdicts))
    for name, verdict in zip(("one", "two"), verdicts, strict=True):
        assert (f"{name} was not audited: no answer" in outcome.err) is (not verdict)
