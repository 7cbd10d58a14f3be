"""The keys of a worker in any mode, and the additional keys of a distributed worker.

Corresponds to ``WorkerConfig`` and ``RestServerConfig`` of Kafka Connect 4.3.1 and to
``DistributedConfig`` of 4.4.0; `agent.*` keys are ours. One deliberate difference:
``bootstrap.servers`` has the default of Connect before 4.2.
"""

from collections.abc import Sequence
from dataclasses import replace

from pyconnect_agent.core.config.agent_keys import (
    ENVIRONMENT,
    HEAP,
    HEAP_LIMIT,
    KAFKA_RELEASES,
    OPTIONS,
    VALID_ENVIRONMENT,
    VALID_HEAP,
    VALID_KAFKA_RELEASES,
    VALID_OPTIONS,
    define_agent_keys,
)
from pyconnect_agent.core.config.client_keys import CLIENT_CONFIG_DEFS, ClientKind
from pyconnect_agent.core.config.listeners import VALID_HEADER_RULES, valid_listeners
from pyconnect_agent.core.config.topic_creation import (
    PARTITIONS_VALIDATOR,
    REPLICATION_FACTOR_VALIDATOR,
)
from pyconnect_agent.core.plugin_catalog import RELEASE_KEY, RELEASES
from pyconnect_api.configdef import (
    CaseInsensitiveValidString,
    ConfigDef,
    LambdaValidator,
    NonEmptyStringWithoutControlChars,
    Range,
    ValidList,
    ValidString,
    define_table,
    invalid_value,
)

_DOCUMENTATION = {
    "ssl.keystore.type": "Format of the key store: PEM, PKCS12 or JKS.",
    "ssl.keystore.location": "File with the private key and its certificate chain.",
    "ssl.keystore.password": "Password of the key store file.",
    "ssl.keystore.key": "Private key as PEM text, instead of a file.",
    "ssl.keystore.certificate.chain": "Certificate chain as PEM text, instead of a file.",
    "ssl.key.password": "Password of the private key.",
    "ssl.truststore.type": "Format of the trust store: PEM, PKCS12 or JKS.",
    "ssl.truststore.location": "File with the trusted certificates.",
    "ssl.truststore.certificates": "Trusted certificates as PEM text, instead of a file.",
    "ssl.endpoint.identification.algorithm": (
        "https checks that a server's certificate names the host; empty turns the check off."
    ),
    "sasl.mechanism": (
        "Authentication: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or AWS_MSK_IAM."
    ),
    "sasl.jaas.config": "Login module and credentials, in the form of a JAAS file's entry.",
}


def _with_prefix(prefix: str) -> ConfigDef:
    definition = ConfigDef()
    for key in CLIENT_CONFIG_DEFS[ClientKind.ADMIN].keys.values():
        if key.name.startswith(prefix):
            text = _DOCUMENTATION.get(key.name, "As for Kafka's Java clients.")
            definition.define_key(replace(key, documentation=text))
    return definition


SSL_CONFIG_DEF = _with_prefix("ssl.")
SASL_CONFIG_DEF = _with_prefix("sasl.")


_APACHE_KEYS = """
bootstrap.servers  LIST  HIGH  localhost:9092
    Addresses of brokers of the Kafka cluster, as host:port.
client.dns.lookup  STRING  MEDIUM  use_all_dns_ips
    Try all addresses of a broker's name, or resolve to canonical names first.
key.converter  CLASS  HIGH  !
    Converter of record keys for connectors that do not name their own.
key.converter.plugin.version  STRING  LOW  ~
    Version or version range of the key converter.
value.converter  CLASS  HIGH  !
    Converter of record values for connectors that do not name their own.
value.converter.plugin.version  STRING  LOW  ~
    Version or version range of the value converter.
header.converter  CLASS  LOW  org.apache.kafka.connect.storage.SimpleHeaderConverter
    Converter of record headers for connectors that do not name their own.
header.converter.plugin.version  STRING  LOW  ~
    Version or version range of the header converter.
task.shutdown.graceful.timeout.ms  LONG  LOW  5000
    Time limit for the stop of all tasks together; later ones are killed.
offset.flush.interval.ms  LONG  LOW  60000
    Time between offset commits of a task.
offset.flush.timeout.ms  LONG  LOW  5000
    Time limit of an offset commit; no effect on tasks that run exactly-once.
plugin.path  LIST  LOW  ~
    Where plugins are: jars, and directories in which each jar or directory is one plugin with its
    own dependencies. References to config providers are not resolved here.
plugin.discovery  STRING  LOW  hybrid_warn
    Way to find plugins: by entry points and service files, by scanning modules and class files, or
    both.
metrics.sample.window.ms  LONG  LOW  30000
    Length of one sample of a rate or average.
metrics.num.samples  INT  LOW  2
    Number of samples a rate or average is made of.
metrics.recording.level  STRING  LOW  INFO
    Accepted for compatibility; there is one level of detail, the same as INFO.
metric.reporters  LIST  LOW  org.apache.kafka.common.metrics.JmxReporter
    Accepted for compatibility; metrics are served for Prometheus.
config.providers  LIST  LOW  ""
    Names of config providers. Each is set up by config.providers.<name>.class and
    config.providers.<name>.param.*, and used as ${name:path:key}.
connector.client.config.override.policy  STRING  MEDIUM  All
    Client settings that a connector may change: All, None, Principal (security settings only) or
    Allowlist.
connector.client.config.override.allowlist  LIST  MEDIUM  ""
    Client settings a connector may change under the policy Allowlist.
topic.creation.enable  BOOLEAN  LOW  true
    Whether source connectors may have topics created.
topic.tracking.enable  BOOLEAN  LOW  true
    Whether to record the topics that each connector uses.
topic.tracking.allow.reset  BOOLEAN  LOW  true
    Whether a request may empty a connector's list of topics.
listeners  LIST  LOW  http://:8083
    Addresses of the REST server, http or https; port 0 takes a free port.
rest.advertised.host.name  STRING  LOW  ~
    Host name of this worker for other workers.
rest.advertised.port  INT  LOW  ~
    Port of this worker for other workers.
rest.advertised.listener  STRING  LOW  ~
    Protocol of this worker for other workers: http or https.
access.control.allow.origin  STRING  LOW  ""
    Origins that may use the REST API from a browser; *: any, blank: none.
access.control.allow.methods  STRING  LOW  ""
    Methods that a browser of such an origin may use; blank: GET, POST, HEAD.
response.http.headers.config  STRING  LOW  ""
    Headers put on every response: comma list of [action] [name]:[value].
rest.extension.classes  LIST  LOW  ""
    REST extensions of Java. This worker has BasicAuthSecurityRestExtension, which reads users and
    passwords by the entry KafkaConnect of a JAAS file, and refuses others.
admin.listeners  LIST  LOW  ~
    Addresses of the admin endpoints; unset: on the REST listeners; empty: nowhere.
"""
_OWN_KEYS = """
agent.admin.basic.auth.file  STRING  LOW  ~
    Properties file of users and passwords (user=password) for the admin interface below /agent;
    read at each request. Without credentials it is served on loopback listeners only. A key of this
    agent alone.
agent.admin.bearer.token.file  STRING  LOW  ~
    File of bearer tokens, one a line, for the admin interface below /agent; read at each request.
    Without credentials it is served on loopback listeners only. A key of this agent alone.
agent.journal.file  STRING  LOW  ~
    File in which this worker records each changing request, as a JSON line without secrets. The
    alternative of agent.journal.topic. A key of this agent alone.
agent.journal.file.bytes  INT  LOW  67108864
    Size at which the journal's file is renamed to FILE.from-N, N being the number of its first
    record; the newest five of these are kept. 0: never. A key of this agent alone.
agent.rest.users  PASSWORD  LOW  ~
    TOML file of the users of REST and the admin interface, with their roles; read at each request.
    A value with an equals sign is the text itself, for a reference. A key of this agent alone.
java.security.auth.login.config  STRING  LOW  ~
    JAAS file of BasicAuthSecurityRestExtension. Unset: the one that
    -Djava.security.auth.login.config=FILE names in the variable KAFKA_OPTS, JDK_JAVA_OPTIONS or
    JAVA_TOOL_OPTIONS, as for a Java worker. A key of this agent alone.
agent.metrics.listeners  LIST  LOW  ""
    Addresses, http or https, that serve GET /metrics for Prometheus and nothing else, without
    credentials; https has the settings of listeners.https. Empty: metrics are served by the admin
    interface only, as /agent/metrics. A key of this agent alone.
agent.oauthbearer.allowed.urls  LIST  LOW  ""
    URLs that a connector's overrides may name as sasl.oauthbearer.token.endpoint.url, beside those
    of the worker's own clients. Java workers have the system property
    org.apache.kafka.sasl.oauthbearer.allowed.urls. A key of this agent alone.
agent.connect.release  STRING  LOW  4.3.1
    Release of Kafka Connect whose interface this worker speaks: version, plugins, validations. Java
    plugins use its jars unless another Kafka is named. A key of this agent alone.
agent.log.kept.bytes  INT  LOW  65536
    Memory for the last log lines of each connector and task, for pyconnect connectors logs; 0 keeps
    none. A key of this agent alone.
agent.log.dir  STRING  LOW  ~
    Directory for a log file of each connector with the lines of its tasks; unset: none. A key of
    this agent alone.
agent.log.file.bytes  INT  LOW  10485760
    Size at which such a file is replaced by a new one. A key of this agent alone.
agent.log.file.count  INT  LOW  5
    Most files of one connector, the newest included. A key of this agent alone.
agent.tracing.otlp.endpoint  STRING  LOW  ~
    Address of an OpenTelemetry collector, such as http://collector:4318, that gets spans of sampled
    records by OTLP over HTTP; needs the extra tracing. Unset: none. A key of this agent alone.
agent.tracing.sample.every  INT  LOW  1000
    One record of a task in so many has a span. A key of this agent alone.
agent.java.home  STRING  LOW  ~
    Home of the Java that runs Java plugins; unset: JAVA_HOME, else PATH. A key of this agent alone.
agent.java.kafka.home  STRING  LOW  ~
    Kafka whose jars Java plugins use; unset: KAFKA_HOME, else jars fetched once. A key of this
    agent alone.
agent.java.kafka.releases  STRING  LOW  ""
    Kafka for single plugin locations, PATTERN=RELEASE or PATTERN=DIRECTORY, separated by commas:
    debezium-*=4.3. Other locations have the usual one, or, if their classes need what it lacks,
    the newest release that has it. A key of this agent alone.
agent.java.heap  STRING  LOW  256m
    Heap (-Xmx) of a Java connector's processes whose configuration sets none. A key of this agent
    alone.
agent.java.heap.limit  STRING  LOW  1g
    Largest heap that a connector's own agent.java.heap may ask for. A key of this agent alone.
agent.java.options  STRING  LOW  \
-XX:+UseSerialGC -XX:NewSize=6m -XX:MaxNewSize=16m -XX:MinHeapFreeRatio=60
    Options of all Java processes. Without the key, those of connectors have -Xmn2m. A key of this
    agent alone.
agent.java.environment  STRING  LOW  ""
    Variables (NAME=value) of all Java processes, beside those of the worker. A key of this agent
    alone.
"""
"""Kafka Connect does not have these keys."""

_CLIENT_AUTHENTICATION = """
ssl.client.auth  STRING  LOW  none
    Whether REST clients must, may or need not show a certificate.
"""


def any_list(*, allow_empty: bool = True, allow_null: bool = False) -> ValidList:
    """Return the validator of lists of any entries without duplicates."""
    return ValidList.any_non_duplicate_values(allow_empty=allow_empty, allow_null=allow_null)


def worker_config_def() -> ConfigDef:
    """Return a new definition of the keys of every worker."""
    definition = define_table(
        ConfigDef(),
        _APACHE_KEYS,
        {
            "bootstrap.servers": any_list(allow_empty=False),
            "client.dns.lookup": ValidString.one_of(
                "use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"
            ),
            "plugin.path": any_list(allow_null=True),
            "plugin.discovery": CaseInsensitiveValidString.one_of(
                "only_scan", "service_load", "hybrid_warn", "hybrid_fail"
            ),
            "metrics.sample.window.ms": Range.at_least(0),
            "metrics.num.samples": Range.at_least(1),
            "metrics.recording.level": ValidString.one_of("INFO", "DEBUG"),
            "metric.reporters": any_list(),
            "config.providers": any_list(),
            "connector.client.config.override.allowlist": any_list(),
            "listeners": valid_listeners("listeners"),
            "response.http.headers.config": VALID_HEADER_RULES,
            "rest.extension.classes": any_list(),
            "admin.listeners": valid_listeners("admin.listeners", optional=True),
        },
    )
    define_agent_keys(definition)
    define_table(
        definition,
        _OWN_KEYS,
        {
            "agent.metrics.listeners": valid_listeners("agent.metrics.listeners", optional=True),
            RELEASE_KEY: ValidString.one_of(*RELEASES),
            "agent.journal.file.bytes": Range.at_least(0),
            "agent.tracing.sample.every": Range.at_least(1),
            "agent.log.kept.bytes": Range.at_least(0),
            "agent.log.file.bytes": Range.at_least(1),
            "agent.log.file.count": Range.at_least(1),
            HEAP: VALID_HEAP,
            HEAP_LIMIT: VALID_HEAP,
            OPTIONS: VALID_OPTIONS,
            ENVIRONMENT: VALID_ENVIRONMENT,
            KAFKA_RELEASES: VALID_KAFKA_RELEASES,
        },
    )
    for key in SSL_CONFIG_DEF.keys.values():
        definition.define_key(key)
    return define_table(
        definition,
        _CLIENT_AUTHENTICATION,
        {"ssl.client.auth": ValidString.one_of("required", "requested", "none")},
    )


MAC_ALGORITHMS = ("HmacMD5", "HmacSHA1", "HmacSHA224", "HmacSHA256", "HmacSHA384", "HmacSHA512")
"""Signature algorithms of Java that this worker can compute."""

_MEMBERSHIP_AND_CONNECTIONS = """
group.id  STRING  HIGH  !
    Name of the Connect cluster; workers with the same name share the work.
session.timeout.ms  INT  HIGH  10000
    Time without heartbeats until a worker leaves the group.
rebalance.timeout.ms  INT  HIGH  60000
    Time limit for a worker to join a rebalance.
heartbeat.interval.ms  INT  HIGH  3000
    Time between heartbeats; at most a third of the session.
exactly.once.source.support  STRING  HIGH  disabled
    Whether source connectors write records and offsets in one transaction. A running cluster goes
    through preparing on all workers before enabled on any.
agent.allow.phase.change  BOOLEAN  LOW  false
    Whether pyconnect upgrade may change exactly.once.source.support in this file and restart the
    worker. A key of this agent alone.
agent.restart.command  STRING  LOW  ~
    Command that restarts this worker, as systemctl restart connect; no shell reads it. Without it
    the worker restarts itself. A key of this agent alone.
agent.leader.transactional.id  STRING  LOW  ~
    Transactional id of the leader instead of connect-cluster-<group.id>. The same on every worker,
    all of them agents, and changed only while all are stopped: as long as members differ, the
    leader refuses requests that need its writes. A key of this agent alone.
agent.journal.topic  STRING  LOW  ~
    Topic in which the agents of the group record each changing request, without secrets. It is
    created with one partition, the replication factor of the config topic and without compaction.
    A key of this agent alone.
agent.journal.retention.ms  LONG  LOW  -1
    Time for which the records stay, for a topic that the worker creates; -1: always. A key of this
    agent alone.
connect.protocol  STRING  LOW  sessioned
    Protocol for the assignment of work; sessioned signs requests too.
scheduled.rebalance.max.delay.ms  INT  LOW  300000
    Time for which the work of a departed worker waits for its return.
worker.sync.timeout.ms  INT  MEDIUM  3000
    Time limit for a worker to catch up with the config topic.
worker.unsync.backoff.ms  INT  MEDIUM  300000
    Time for which a worker that could not catch up stays out of the group.
client.id  STRING  LOW  ""
    Part of the client ids of this worker's own clients.
metadata.max.age.ms  LONG  LOW  300000
    Age at which metadata of the cluster is refreshed.
reconnect.backoff.ms  LONG  LOW  50
    First wait before connecting to a broker again.
reconnect.backoff.max.ms  LONG  LOW  1000
    Longest wait before connecting to a broker again.
socket.connection.setup.timeout.ms  LONG  LOW  10000
    First limit of setting up a connection.
socket.connection.setup.timeout.max.ms  LONG  LOW  30000
    Longest limit of setting up a connection.
retry.backoff.ms  LONG  LOW  100
    First wait before a request is repeated.
retry.backoff.max.ms  LONG  LOW  1000
    Longest wait before a request is repeated.
metadata.recovery.rebootstrap.trigger.ms  LONG  LOW  300000
    Time without metadata until bootstrap.servers is used again.
send.buffer.bytes  INT  MEDIUM  131072
    Size of the TCP send buffer; -1 leaves it to the system.
receive.buffer.bytes  INT  MEDIUM  32768
    Size of the TCP receive buffer; -1 leaves it to the system.
bootstrap.resolve.timeout.ms  LONG  LOW  0
    Accepted for compatibility: names of brokers are looked up until they are known.
request.timeout.ms  INT  MEDIUM  40000
    Time limit for the answer to a request.
connections.max.idle.ms  LONG  MEDIUM  540000
    Idle time after which a connection is closed.
security.protocol  STRING  MEDIUM  PLAINTEXT
    Protocol of connections to brokers.
metadata.recovery.strategy  STRING  LOW  rebootstrap
    Whether to go back to bootstrap.servers when no known broker answers.
metadata.cluster.check.enable  BOOLEAN  LOW  true
    Accepted for compatibility: clients do not send the cluster's id to brokers.
"""
_TOPICS_AND_SIGNATURES = """
internal.topics.automatic.creation.enable  BOOLEAN  MEDIUM  true
    Whether missing internal topics are created, connectors' own offsets topics among them. If not,
    a worker or a connector whose topic is missing fails.
offset.storage.topic  STRING  HIGH  !
    Topic that holds source offsets. Other offset.storage.* keys are its settings.
offset.storage.partitions  INT  LOW  25
    Partitions of the offset topic when created; -1: broker default.
offset.storage.replication.factor  SHORT  LOW  3
    Replicas of the offset topic when created; -1: broker default.
config.storage.topic  STRING  HIGH  !
    Topic that holds configurations of connectors. Other config.storage.* keys are its settings.
config.storage.replication.factor  SHORT  LOW  3
    Replicas of the config topic when created; -1: broker default.
status.storage.topic  STRING  HIGH  !
    Topic that holds states of connectors and tasks. Other status.storage.* keys are its settings.
status.storage.partitions  INT  LOW  5
    Partitions of the status topic when created; -1: broker default.
status.storage.replication.factor  SHORT  LOW  3
    Replicas of the status topic when created; -1: broker default.
inter.worker.key.ttl.ms  INT  LOW  3600000
    Age at which the key that signs requests between workers is replaced.
inter.worker.key.generation.algorithm  STRING  LOW  HmacSHA256
    Algorithm for which the key between workers is made.
inter.worker.key.size  INT  LOW  ~
    Bits of the key between workers; unset takes the algorithm's usual length.
inter.worker.signature.algorithm  STRING  LOW  HmacSHA256
    Algorithm with which requests between workers are signed.
inter.worker.verification.algorithms  LIST  LOW  HmacSHA256
    Algorithms accepted in requests; must have the one used for signing.
"""
_WAITS = (
    "bootstrap.resolve.timeout.ms",
    "metadata.max.age.ms",
    "metadata.recovery.rebootstrap.trigger.ms",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
)


def distributed_config_def() -> ConfigDef:
    """Return a new definition of the keys of a distributed worker."""
    definition = define_table(
        worker_config_def(),
        _MEMBERSHIP_AND_CONNECTIONS,
        {
            "exactly.once.source.support": CaseInsensitiveValidString.one_of(
                "disabled", "enabled", "preparing"
            ),
            "agent.leader.transactional.id": NonEmptyStringWithoutControlChars(),
            "connect.protocol": ValidString.one_of("eager", "compatible", "sessioned"),
            "scheduled.rebalance.max.delay.ms": Range.between(0, 2**31 - 1),
            **dict.fromkeys(_WAITS, Range.at_least(0)),
            "send.buffer.bytes": Range.at_least(-1),
            "receive.buffer.bytes": Range.at_least(-1),
            "security.protocol": CaseInsensitiveValidString.one_of(
                "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
            ),
            "metadata.recovery.strategy": CaseInsensitiveValidString.one_of("none", "rebootstrap"),
        },
    )
    for key in SASL_CONFIG_DEF.keys.values():
        definition.define_key(key)
    supported = ", ".join(MAC_ALGORITHMS)
    return define_table(
        definition,
        _TOPICS_AND_SIGNATURES,
        {
            "offset.storage.partitions": PARTITIONS_VALIDATOR,
            "offset.storage.replication.factor": REPLICATION_FACTOR_VALIDATOR,
            "config.storage.replication.factor": REPLICATION_FACTOR_VALIDATOR,
            "status.storage.partitions": PARTITIONS_VALIDATOR,
            "status.storage.replication.factor": REPLICATION_FACTOR_VALIDATOR,
            "inter.worker.key.ttl.ms": Range.between(0, 2**31 - 1),
            "inter.worker.key.generation.algorithm": LambdaValidator(
                _check_algorithm, f"one of {supported}"
            ),
            "inter.worker.signature.algorithm": LambdaValidator(
                _check_algorithm, f"one of {supported}"
            ),
            "inter.worker.verification.algorithms": LambdaValidator(
                _check_algorithms, f"some of {supported}"
            ),
        },
    )


def _check_algorithm(name: str, value: object) -> None:
    if value not in MAC_ALGORITHMS:
        raise invalid_value(
            name,
            value,
            "the algorithm is not supported by this worker; the supported algorithms are: "
            f"[{', '.join(MAC_ALGORITHMS)}]",
        )


def _check_algorithms(name: str, value: object) -> None:
    if not isinstance(value, Sequence) or not value:
        raise invalid_value(
            name, value, "At least one signature verification algorithm must be provided"
        )
    for algorithm in value:
        _check_algorithm(name, algorithm)
