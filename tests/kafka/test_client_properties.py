"""One file of client properties works with brokers in every client library that reads it.

The file has TLS, or tokens, which an authorization server gives and a broker checks by JWKS.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient

from pyconnect_agent.core.clients.configs import kafka_python_config
from pyconnect_agent.core.clients.librdkafka import translate
from pyconnect_agent.core.config.client_keys import ClientKind
from pyconnect_agent.kafka.admin import Admin
from pyconnect_agent.kafka.clients import client_arguments, create_admin
from pyconnect_cli.kafka.admin import KafkaAccess, KafkaAdmin, connected
from pyconnect_cli.kafka.model import TopicPartition
from pyconnect_cli.settings.given_files import read_security
from pyconnect_clients.properties_file import read_client_properties
from pyconnect_clients.token_login import TOKEN_KEYS
from pyconnect_reconcile.spec import Cluster
from pyconnect_reconcile.topics.cluster_view import ClusterView
from pyconnect_sandbox.broker import BrokerSecurity, KafkaBroker
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.kafka.test_group_membership import Member
from tests.support.agents.agent import (
    Agents,
    append_lines,
    sink_config,
    source_config,
    wait_until_equal,
)
from tests.support.agents.upgrade_cluster import ALLOWED, Tool
from tests.support.audits.seeding import Record, seed_topic
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.seeds import chosen
from tests.support.servers.authorization_server import (
    AUDIENCE,
    CLIENT,
    ISSUER,
    SCOPE,
    SECRET,
    AuthorizationServer,
    authorization_server,
)
from tests.support.servers.kafka import SELDOM_FENCED, Servers
from tests.support.servers.tls_clusters import (
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

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

TOPIC = "seen"
WAIT_S = 150


@pytest.fixture(scope="module")
def clusters(
    kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TlsClusters]:
    """Two clusters, each with one topic on which a transaction is open."""
    directory = tmp_path_factory.mktemp("tls")
    servers = Servers(kafka_runtime, directory)
    opened = []
    try:
        made = tls_clusters(servers, directory)
        for broker in (made.scram, made.mutual):
            seed = seed_topic(broker.bootstrap_servers, name=TOPIC)
            opened.append(seed.open([Record(b"open")])[0])
        yield made
        for producer in opened:
            producer.abort_transaction(WAIT_S)
    finally:
        servers.close()


def agents_librdkafka(bootstrap: str, file: Path) -> bool:
    java = {**read_client_properties(str(file)), "bootstrap.servers": bootstrap}
    cluster_id = Admin(translate(java, ClientKind.ADMIN).properties).cluster_id(int(WAIT_S * 1000))
    return bool(cluster_id)


def agents_kafka_python(bootstrap: str, file: Path) -> bool:
    java = {**read_client_properties(str(file)), "bootstrap.servers": bootstrap}
    arguments = client_arguments(kafka_python_config(java, client_id="group"))
    client = KafkaAdminClient(**arguments, bootstrap_timeout_ms=int(WAIT_S * 1000))
    try:
        return TOPIC in client.list_topics()
    finally:
        client.close()


def commands_librdkafka(bootstrap: str, file: Path) -> bool:
    cluster = KafkaAccess(bootstrap=bootstrap, security=read_security(str(file)))
    admin = KafkaAdmin(cluster.librdkafka(), lambda: WAIT_S)
    return admin.partitions([TOPIC]) == {TopicPartition(TOPIC, 0)}


def commands_kafka_python(bootstrap: str, file: Path) -> bool:
    cluster = KafkaAccess(bootstrap=bootstrap, security=read_security(str(file)))
    with connected(cluster, lambda: WAIT_S) as protocol:
        return len(protocol.brokers()) == 1


def snapshots(bootstrap: str, file: Path) -> bool:
    """Return whether librdkafka reads offsets and kafka-python finds the open transaction."""
    view = ClusterView(Cluster(bootstrap=bootstrap, properties=str(file)))
    [part] = view.snapshot([TOPIC]).partitions
    return len(part.open_producers) == 1


CLIENTS = [
    agents_librdkafka,
    agents_kafka_python,
    commands_librdkafka,
    commands_kafka_python,
    snapshots,
]
FORMS: Mapping[str, Callable[[TlsClusters], dict[str, str]]] = {
    "pem": lambda made: {**trusting_pem(made.stores), **known_by_pem(made.stores)},
    "text": lambda made: known_by_text(made.stores),
    "jks": lambda made: {
        **trusting_store(made.stores, "JKS"),
        **known_by_store(made.stores, "JKS"),
    },
    "pkcs12": lambda made: {
        **trusting_store(made.stores, "PKCS12"),
        **known_by_store(made.stores, "PKCS12"),
    },
}


def refused(broker: KafkaBroker, file: Path) -> list[str]:
    """Return the names of the clients that fail with this file."""
    bootstrap = broker.sasl_bootstrap_servers
    return [client.__name__ for client in CLIENTS if not client(bootstrap, file)]


@pytest.mark.parametrize("form", chosen(["text", "jks"], long=["pem", "pkcs12"]))
def test_stores_of_every_kind_serve_every_client(
    clusters: TlsClusters, tmp_path: Path, form: str
) -> None:
    """Key stores of every format convince a broker that requires client certificates."""
    properties = {"security.protocol": "SSL", **FORMS[form](clusters)}
    assert refused(clusters.mutual, properties_file(tmp_path / "p", properties)) == []


def test_a_login_behind_tls_serves_every_client(clusters: TlsClusters, tmp_path: Path) -> None:
    """A SCRAM login over TLS works, with the password from a config provider."""
    properties = {**clusters.scram_properties(), **trusting_store(clusters.stores, "JKS")}
    secret = properties_file(tmp_path / "secret", {"jaas": properties["sasl.jaas.config"]})
    package = "org.apache.kafka.common.config.provider"
    properties |= {
        "config.providers": "file",
        "config.providers.file.class": f"{package}.FileConfigProvider",
        "sasl.jaas.config": f"${{file:{secret}:jaas}}",
    }
    assert refused(clusters.scram, properties_file(tmp_path / "p", properties)) == []


@pytest.mark.long(only=True)
def test_unsecured_tokens_serve_every_client(servers: Servers, tmp_path: Path) -> None:
    """The clients create unsecured tokens themselves."""
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    broker = servers.broker(
        security=BrokerSecurity(sasl_users={"nobody": "p"}),
        properties={
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "listener.name.sasl.oauthbearer.sasl.jaas.config": (
                f'{module} required unsecuredLoginStringClaim_sub="broker";'
            ),
        },
    )
    seed = seed_topic(broker.bootstrap_servers, name=TOPIC)
    producer = seed.open([Record(b"open")])[0]
    bootstrap = broker.sasl_bootstrap_servers
    file = properties_file(
        tmp_path / "p",
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f'{module} required unsecuredLoginStringClaim_sub="alice";',
        },
    )
    refused = [client.__name__ for client in CLIENTS if not client(bootstrap, file)]
    producer.abort_transaction(WAIT_S)
    assert refused == []


@pytest.mark.parametrize("client", ["expired", "without", "distrustful"])
def test_a_refused_certificate_is_logged_with_its_side_and_file(
    clusters: TlsClusters, client: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log names side and file, where a broker only closes the connection."""
    stores, others = clusters.stores, Stores(tmp_path / "others")
    gone = stores.identity("gone", datetime.now(UTC) - timedelta(days=1))
    java = {
        "bootstrap.servers": clusters.mutual.sasl_bootstrap_servers,
        "security.protocol": "SSL",
        **trusting_pem(others if client == "distrustful" else stores),
    }
    if client == "expired":
        java |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(gone)}
    expected = {
        "expired": f"{gone}, which has expired at",
        "without": "this side has no certificate (ssl.keystore.*)",
        "distrustful": f"it trusts {others.authority}",
    }[client]
    admin = create_admin(translate(java, ClientKind.ADMIN).properties)

    def told() -> str:
        admin.poll(0.05)
        return str([vars(record).get("reason") for record in caplog.records])

    eventually(lambda: expected in told(), WAIT_S, told)
    assert "PRIVATE" not in told()


LIFETIME_S = 30
MINUTE_OUTLIVED_S = 210
"""The next token is due after half of this time; the server hangs until four fifths of it: 63 s."""
REAUTHENTICATED_AFTER_MS = 5_000
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
COMMANDS = (
    ("acls", "check"),
    ("transactions", "list"),
    ("transactions", "find-hanging"),
    ("offsets", "lag"),
    ("upgrade", "plan", "--phase", "preparing"),
)


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuthorizationServer]:
    directory = tmp_path_factory.mktemp("tokens")
    with authorization_server(directory / "server", LIFETIME_S) as server:
        yield server


@pytest.fixture(scope="module")
def broker(
    kafka_runtime: KafkaRuntime,
    tokens: AuthorizationServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[KafkaBroker]:
    servers = Servers(kafka_runtime, tmp_path_factory.mktemp("broker"))
    listener = "listener.name.sasl.oauthbearer."
    validator = MODULE.replace("LoginModule", "ValidatorCallbackHandler")
    with pytest.MonkeyPatch.context() as patched:
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={tokens.jwks}"
        patched.setenv("JAVA_TOOL_OPTIONS", allowed)
        try:
            yield servers.broker(
                security=BrokerSecurity(
                    acl=True, sasl_users={"nobody": "p"}, super_users=(f"User:{CLIENT}",)
                ),
                properties={
                    **SELDOM_FENCED,
                    "sasl.enabled.mechanisms": "OAUTHBEARER",
                    f"{listener}sasl.jaas.config": f"{MODULE} required;",
                    f"{listener}sasl.server.callback.handler.class": validator,
                    f"{listener}sasl.oauthbearer.jwks.endpoint.url": tokens.jwks,
                    f"{listener}sasl.oauthbearer.expected.audience": AUDIENCE,
                    f"{listener}sasl.oauthbearer.expected.issuer": ISSUER,
                    f"{listener}connections.max.reauth.ms": str(REAUTHENTICATED_AFTER_MS),
                },
            )
        finally:
            servers.close()


def login(tokens: AuthorizationServer, **more: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": MODULE.replace(
            "OAuthBearerLoginModule", "secured.OAuthBearerLoginCallbackHandler"
        ),
        "sasl.oauthbearer.token.endpoint.url": tokens.endpoint,
        "sasl.jaas.config": (
            f'{MODULE} required clientId="{CLIENT}" clientSecret="{SECRET}" scope="{SCOPE}";'
        ),
        "sasl.login.refresh.window.factor": "0.5",
        "sasl.login.refresh.window.jitter": "0",
        **more,
    }


def test_tokens_serve_every_client(
    broker: KafkaBroker, tokens: AuthorizationServer, tmp_path: Path
) -> None:
    """Agent, commands and jobs log in; the broker checks signature, audience and issuer."""
    producer = seed_topic(broker.bootstrap_servers, name=TOPIC).open([Record(b"open")])[0]
    file = properties_file(tmp_path / "p", login(tokens))
    refused = [each.__name__ for each in CLIENTS if not each(broker.sasl_bootstrap_servers, file)]
    producer.abort_transaction(WAIT_S)
    assert refused == []


@pytest.mark.long
@pytest.mark.parametrize("lifetime_s", chosen([LIFETIME_S], long=[MINUTE_OUTLIVED_S]))
def test_a_member_stays_while_the_authorization_server_hangs(
    broker: KafkaBroker,
    tokens: AuthorizationServer,
    lifetime_s: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The member logs in with the token that it holds, and later with the next one.

    With `scripts/test --long` a request for a token also hangs for a full minute.
    """
    tokens.lifetime(lifetime_s)
    # Token sources are shared by equal settings, and no other test has this timeout.
    properties = login(tokens, **{"sasl.login.read.timeout.ms": str(1_500 + lifetime_s)})
    java = {**properties, "bootstrap.servers": broker.sasl_bootstrap_servers}
    assert set(properties) - {"security.protocol"} <= TOKEN_KEYS
    member = Member(
        "member",
        broker.sasl_bootstrap_servers,
        unique_name("group"),
        client=client_arguments(kafka_python_config(java, client_id="member")),
    )
    started_s, given = time.monotonic(), tokens.given()
    member.thread.start(60_000)
    try:
        member.join()
        member_id = member.thread.member_id
        with tokens.hanging():
            # The server hangs from before the next token is due until shortly before the held one
            # expires.
            eventually(lambda: time.monotonic() - started_s > lifetime_s * 0.8, lifetime_s)
            assert tokens.given() == given
        eventually(lambda: time.monotonic() - started_s > lifetime_s * 1.2, lifetime_s)
        assert tokens.given() > given
        # A busy broker may be lost and found; a login that fails for longer than the session gives
        # another member id.
        assert set(member.events.queue) <= {"coordinator lost"}
        assert "uthentication" not in caplog.text
        assert member.thread.member_id == member_id
    finally:
        member.thread.stop(5_000)
        tokens.lifetime(LIFETIME_S)


@pytest.mark.long(only=True)
def test_an_agent_and_its_tasks_outlive_their_tokens(
    broker: KafkaBroker, tokens: AuthorizationServer, tmp_path: Path
) -> None:
    """Lines flow after the first tokens have expired, and commands still log in by token."""
    properties = login(tokens)
    for prefix in ("producer.", "consumer.", "admin."):
        properties |= {f"{prefix}{name}": value for name, value in login(tokens).items()}
    agents = Agents(broker.sasl_bootstrap_servers, tmp_path)
    try:
        agent = agents.start(properties=ALLOWED | properties)
        topic, source, sink = unique_name("lines"), tmp_path / "in.txt", tmp_path / "out.txt"
        append_lines(source, 1, 100)
        agent.create("source", source_config(source, topic))
        agent.create("sink", sink_config(sink, topic))
        wait_until_equal(sink, source)
        started_s = time.monotonic()
        eventually(lambda: time.monotonic() - started_s > LIFETIME_S + 5)
        append_lines(source, 101, 200)
        wait_until_equal(sink, source)
        commands = Tool(broker.sasl_bootstrap_servers, agent.url, tmp_path)
        file = properties_file(tmp_path / "client.properties", login(tokens))
        commands.environment["PYCONNECT_KAFKA_PROPERTIES"] = str(file)
        for words in COMMANDS:
            ended = commands.run(*words)
            assert ended.returncode == 0, (words, ended.stdout, ended.stderr)
        commands.must_upgrade("preparing")
        assert agent.get("/agent")["exactly_once_source_support"] == "preparing"
        append_lines(source, 201, 300)
        wait_until_equal(sink, source)
        assert "session expired" not in agent.log()
        assert SECRET not in agent.log()
    finally:
        agents.close()
