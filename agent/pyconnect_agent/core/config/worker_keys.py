"""The keys of a worker in any mode.

Corresponds to ``WorkerConfig`` and ``RestServerConfig`` of Kafka Connect 4.3.1. One deliberate
difference: ``bootstrap.servers`` has the default of Connect before 4.2.
"""

from __future__ import annotations

from dataclasses import replace

from pyconnect_agent.core.apache_release import RELEASE_KEY, RELEASES
from pyconnect_agent.core.config.agent_keys import define_agent_keys
from pyconnect_agent.core.config.client_keys import CLIENT_CONFIG_DEFS, ClientKind
from pyconnect_agent.core.config.java_keys import (
    ENVIRONMENT,
    HEAP,
    HEAP_LIMIT,
    KAFKA_RELEASES,
    OPTIONS,
    VALID_ENVIRONMENT,
    VALID_HEAP,
    VALID_KAFKA_RELEASES,
    VALID_OPTIONS,
)
from pyconnect_agent.core.config.listeners import VALID_HEADER_RULES, valid_listeners
from pyconnect_api.configdef import (
    CaseInsensitiveValidString,
    ConfigDef,
    Range,
    ValidList,
    ValidString,
    define_table,
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
    """Return the validator of lists whose entries are free but not repeated."""
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
