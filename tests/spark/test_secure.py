"""Clusters behind TLS: every client reads every kind of store, and no secret is shown."""

import subprocess
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from pyconnect_reconcile.bench import COMMITTED, read_topics
from pyconnect_reconcile.capture import capture
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import read_spec
from pyconnect_reconcile.topics import cluster_view
from pyconnect_sandbox.broker import BrokerSecurity
from pyconnect_sandbox.server import LOOPBACK, free_port
from tests.support.audits.audits import Audit, no_table
from tests.support.audits.seeding import Record, seed_topic
from tests.support.commands.reconcile_command import QUICK, Reconcile
from tests.support.servers.kafka import Servers
from tests.support.servers.tls_clusters import (
    SASL_PASSWORD,
    STORE_PASSWORD,
    Stores,
    TlsClusters,
    known_by_pem,
    known_by_store,
    known_by_text,
    properties_file,
    tls_clusters,
    trusting_pem,
    trusting_store,
)

pytestmark = [pytest.mark.spark, pytest.mark.timeout(800)]

TOPIC = "orders"
RECORDS = [Record(f"n={n}".encode()) for n in range(30)]
MISSING = 11
SECRETS = (SASL_PASSWORD, 'scram \\"secret\\"', STORE_PASSWORD)
LOOK_EVERY_S = 1.0
UI_PAGES = ("environment", "SQL", "jobs", "executors")


@pytest.fixture(scope="module")
def clusters(module_servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> TlsClusters:
    """Two clusters with the same topic; the second lacks one record."""
    made = tls_clusters(module_servers, tmp_path_factory.mktemp("tls"))
    seed_topic(made.scram.bootstrap_servers, name=TOPIC).write(RECORDS)
    kept = [record for n, record in enumerate(RECORDS) if n != MISSING]
    seed_topic(made.mutual.bootstrap_servers, name=TOPIC).write(kept)
    return made


def numbers(spark: SparkSession, bootstrap: str, properties: Path) -> set[int]:
    """Return the numbers that Spark reads from TOPIC, up to the offsets of a snapshot."""
    cluster = {"bootstrap": bootstrap, "properties": str(properties)}
    spec = read_spec({"job": "ranges", "topics": [TOPIC], "clusters": {"main": cluster}})
    ranges = capture(spec, properties.parent, no_table).snapshots["main"].partitions
    records = read_topics(spark, spec.clusters["main"], ranges, isolation=COMMITTED)
    return {int(row.value.decode().removeprefix("n=")) for row in records.select("value").collect()}


def test_a_trust_store_whose_type_is_not_named_serves_spark_and_the_snapshot(
    clusters: TlsClusters, spark: SparkSession, tmp_path: Path
) -> None:
    """A Java trust store without a type is read by Java's consumer, and by librdkafka as PEM."""
    trusted = {"ssl.truststore.location": str(clusters.stores.authority)}
    file = properties_file(tmp_path / "p", {**clusters.scram_properties(), **trusted})
    assert numbers(spark, clusters.scram.sasl_bootstrap_servers, file) == set(range(len(RECORDS)))


@pytest.mark.parametrize("form", ["pem", "text", "jks", "pkcs12"])
def test_stores_of_every_kind_serve_spark_and_the_snapshot(
    clusters: TlsClusters, spark: SparkSession, tmp_path: Path, form: str
) -> None:
    """Each kind of store gives both clients their certificate and the broker's authority."""
    stores = clusters.stores
    known = {
        "pem": lambda: {**trusting_pem(stores), **known_by_pem(stores)},
        "text": lambda: known_by_text(stores),
        "jks": lambda: {**trusting_store(stores, "JKS"), **known_by_store(stores, "JKS")},
        "pkcs12": lambda: {**trusting_store(stores, "PKCS12"), **known_by_store(stores, "PKCS12")},
    }[form]()
    file = properties_file(tmp_path / "p", {"security.protocol": "SSL", **known})
    kept = set(range(len(RECORDS))) - {MISSING}
    assert numbers(spark, clusters.mutual.sasl_bootstrap_servers, file) == kept


def test_an_open_transaction_is_named_behind_tls(
    clusters: TlsClusters, spark: SparkSession, tmp_path: Path
) -> None:
    """The client that asks for producers reads the same stores."""
    seed = seed_topic(clusters.scram.bootstrap_servers)
    seed.write(RECORDS)
    producer, [(_, offset)] = seed.open([Record(b"n=30")])
    trusted = trusting_store(clusters.stores, "JKS")
    file = properties_file(tmp_path / "p", {**clusters.scram_properties(), **trusted})
    audit = Audit(spark, clusters.scram.sasl_bootstrap_servers, tmp_path)
    main = {"bootstrap": audit.bootstrap, "properties": str(file)}
    answer = audit.run("ranges", topics=[seed.topic], clusters={"main": main})
    [finding] = answer.of("open-transaction")
    assert f"since offset {offset}" in finding.message
    producer.abort_transaction(60)


class Watch:
    """The parts of a run that other users of the machine can see."""

    def __init__(self, process: subprocess.Popen[str], ui: str) -> None:
        self.command_lines: set[str] = set()
        self.specs: dict[Path, tuple[int, str]] = {}
        self.pages: dict[str, str] = {}
        self._process = psutil.Process(process.pid)
        self._ui = ui

    def look(self) -> None:
        """Read every command line and every page of the UI once."""
        try:
            tree = [self._process, *self._process.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        for process in tree:
            try:
                line = process.cmdline()
            except (psutil.NoSuchProcess, psutil.ZombieProcess):
                continue
            self.command_lines.add(" ".join(line))
            for part in line:
                if part.endswith("/spec.json") and Path(part).exists():
                    self.specs[Path(part)] = (Path(part).stat().st_mode, Path(part).read_text())
        for page in UI_PAGES:
            try:
                with urllib.request.urlopen(f"{self._ui}/{page}/", timeout=10) as answer:
                    self.pages[page] = answer.read().decode()
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                return


def test_secrets_are_seen_nowhere_while_two_clusters_are_compared(
    clusters: TlsClusters, tmp_path: Path
) -> None:
    """No command line, page, event, log, spec or report of a run has a secret."""
    stores = clusters.stores
    left = properties_file(
        tmp_path / "left.properties",
        {**clusters.scram_properties(), **trusting_store(stores, "JKS")},
    )
    right = properties_file(
        tmp_path / "right.properties",
        {"security.protocol": "SSL", **trusting_pem(stores), **known_by_store(stores, "PKCS12")},
    )
    events, temporary = tmp_path / "events", tmp_path / "temporary"
    events.mkdir()
    temporary.mkdir()
    (tmp_path / "config" / "pyconnect").mkdir(parents=True)
    (tmp_path / "config" / "pyconnect" / "config.toml").write_text(
        'current = "secure"\n[contexts.secure]\nurl = "http://127.0.0.1:1"\n'
        f'kafka = {{ bootstrap = "{clusters.scram.sasl_bootstrap_servers}",'
        f' properties = "{left}" }}\n'
    )
    ui_port = free_port()
    reconcile = Reconcile(tmp_path, XDG_CONFIG_HOME=str(tmp_path / "config"), TMPDIR=str(temporary))
    process = reconcile.start(
        "topic-topic", TOPIC, TOPIC,
        "--right-bootstrap", clusters.mutual.sasl_bootstrap_servers,
        "--right-properties", str(right),
        *QUICK,
        "--conf", "spark.ui.enabled=true", "--conf", f"spark.ui.port={ui_port}",
        "--conf", "spark.eventLog.enabled=true", "--conf", f"spark.eventLog.dir={events.as_uri()}",
        "--conf", "spark.eventLog.compress=false",
    )  # fmt: skip
    watch = Watch(process, f"http://{LOOPBACK}:{ui_port}")
    while process.poll() is None:
        watch.look()
        # The wait leaves the machine time for the run itself.
        with suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_EVERY_S)
    ended = reconcile.end(process)
    assert (ended.code, ended.found) == (1, [("missing", [(0, MISSING)])]), ended.err
    assert any("java" in line for line in watch.command_lines)
    assert {"environment", "SQL"} <= watch.pages.keys()
    [(mode, spec)] = watch.specs.values()
    assert mode & 0o777 == 0o600
    written = [path for path in [*ended.directory.rglob("*"), *events.rglob("*")] if path.is_file()]
    assert any(path.is_relative_to(events) for path in written)
    seen = [*watch.command_lines, *watch.pages.values(), spec, ended.out, ended.err]
    seen += [path.read_bytes().decode("utf-8", "replace") for path in written]
    for secret in SECRETS:
        assert not [text for text in seen if secret in text]
    assert "kafka.sasl.jaas.config" not in spec
    left_behind = [path.name for path in temporary.iterdir() if path.name.startswith("pyconnect")]
    assert left_behind == []


@pytest.mark.parametrize("wrong", ["password", "authority", "store-password"])
def test_refused_credentials_are_reported_at_once(
    clusters: TlsClusters, tmp_path: Path, wrong: str
) -> None:
    """A run with refused credentials ends with exit code 11 and the reason, without the secret."""
    stores = clusters.stores
    properties = {**clusters.scram_properties(), **trusting_store(stores, "JKS")}
    reason = {
        "password": "Authentication failed",
        "authority": "certificate verify failed",
        "store-password": "the password is wrong",
    }[wrong]
    match wrong:
        case "password":
            properties |= clusters.scram_properties(password="hunter2-is-wrong")
        case "authority":
            other = Stores(tmp_path / "other")
            properties["ssl.truststore.location"] = str(other.trust_store("JKS"))
        case _:
            properties["ssl.truststore.password"] = "hunter2-is-wrong"
    file = properties_file(tmp_path / "p", properties)
    bootstrap = clusters.scram.sasl_bootstrap_servers
    if wrong != "password":
        main = {"bootstrap": bootstrap, "properties": str(file)}
        spec = read_spec({"job": "ranges", "topics": [TOPIC], "clusters": {"main": main}})
        with pytest.raises(ReconcileError, match=reason) as refused:
            capture(spec, tmp_path, no_table)
        assert "hunter2" not in str(refused.value)
        return
    reconcile = Reconcile(tmp_path, PYCONNECT_KAFKA_BOOTSTRAP=bootstrap)
    ended = reconcile("sequence", TOPIC, "--sequence", "text", "--kafka-properties", str(file))
    assert ended.code == 11, ended.err
    assert ended.report is not None
    [finding] = ended.report["findings"]
    assert finding["kind"] == "failed"
    for text in (ended.err, finding["message"]):
        assert reason in text
        assert not [secret for secret in (*SECRETS, "hunter2-is-wrong") if secret in text]


MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
JAAS = MODULE + ' required username="{}" password="{}";'


def test_sasl_credentials_of_the_properties_file_are_used_and_never_shown(
    servers: Servers, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three clients use the credentials of one file, and plans do not show them."""
    broker = servers.broker(security=BrokerSecurity(sasl_users={"auditor": "hunter2"}))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result(60)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in [1, 2, 4]:
        producer.produce("t", str(number).encode())
    assert producer.flush(60) == 0
    properties = tmp_path / "client.properties"
    lines = ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN"]
    properties.write_text(
        "\n".join([*lines, "sasl.jaas.config=" + JAAS.format("auditor", "hunter2")])
    )
    audit = Audit(spark, broker.sasl_bootstrap_servers, tmp_path)
    clusters = {"main": {"bootstrap": broker.sasl_bootstrap_servers, "properties": str(properties)}}
    answer = audit.run("sequence", topics=["t"], sequence=r"regex:(\d+)", clusters=clusters)
    assert answer.intervals("missing") == {(None, 3, 3)}
    spec = read_spec({"job": "ranges", "topics": ["t"], "clusters": clusters})
    ranges = capture(spec, tmp_path, no_table).snapshots["main"].partitions
    records = read_topics(spark, spec.clusters["main"], ranges, isolation=COMMITTED)
    assert "hunter2" not in records._jdf.queryExecution().toString()
    properties.write_text(
        "\n".join([*lines, "sasl.jaas.config=" + JAAS.format("auditor", "wrong")])
    )
    # librdkafka tries again until the time is over.
    monkeypatch.setattr(cluster_view, "TIMEOUT_S", 3.0)
    with pytest.raises(ReconcileError) as caught:
        audit.run("sequence", topics=["t"], sequence=r"regex:(\d+)", clusters=clusters)
    assert "wrong" not in caught.value.message
