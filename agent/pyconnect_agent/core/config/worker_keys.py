"""The keys of a worker in any mode.

Layer: core. Corresponds to ``WorkerConfig`` and ``RestServerConfig`` of Kafka Connect 4.3.1. One
deliberate difference: ``bootstrap.servers`` has the default of Connect before 4.2.
"""

from __future__ import annotations

from pyconnect_agent.core.config.agent_keys import define_agent_keys
from pyconnect_agent.core.config.listeners import ListenersValidator
from pyconnect_agent.core.config.response_headers import HeaderRulesValidator
from pyconnect_agent.core.config.security_keys import SSL_CONFIG_DEF
from pyconnect_api.configdef import (
    CaseInsensitiveValidString,
    ConfigDef,
    ConfigType,
    Importance,
    Range,
    ValidList,
    ValidString,
)

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
SIMPLE_HEADER_CONVERTER = "org.apache.kafka.connect.storage.SimpleHeaderConverter"


def any_list(*, allow_empty: bool = True, allow_null: bool = False) -> ValidList:
    """Return the validator of lists whose entries are free but not repeated."""
    return ValidList.any_non_duplicate_values(allow_empty=allow_empty, allow_null=allow_null)


def worker_config_def() -> ConfigDef:
    """Return a new definition of the keys of every worker."""
    definition = ConfigDef()
    _define_clients_and_converters(definition)
    _define_runtime(definition)
    _define_metrics(definition)
    _define_permissions(definition)
    _define_rest_addresses(definition)
    _define_rest_headers(definition)
    _define_admin_interface(definition)
    define_agent_keys(definition)
    _define_logs_and_logins(definition)
    _define_java(definition)
    for key in SSL_CONFIG_DEF.keys.values():
        definition.define_key(key)
    definition.define(
        "ssl.client.auth",
        ConfigType.STRING,
        default="none",
        validator=ValidString.one_of("required", "requested", "none"),
        importance=LOW,
        documentation="Whether REST clients must, may or need not show a certificate.",
    )
    return definition


def _define_clients_and_converters(definition: ConfigDef) -> None:
    definition.define(
        "bootstrap.servers",
        ConfigType.LIST,
        default="localhost:9092",
        validator=any_list(allow_empty=False),
        importance=HIGH,
        documentation="Addresses of brokers of the Kafka cluster, as host:port.",
    )
    definition.define(
        "client.dns.lookup",
        ConfigType.STRING,
        default="use_all_dns_ips",
        validator=ValidString.one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
        importance=MEDIUM,
        documentation="Try all addresses of a broker's name, or resolve to canonical names first.",
    )
    for kind, what in (("key", "keys"), ("value", "values")):
        definition.define(
            f"{kind}.converter",
            ConfigType.CLASS,
            importance=HIGH,
            documentation=f"Converter of record {what} for connectors that do not name their own.",
        )
        _define_converter_version(definition, kind)
    definition.define(
        "header.converter",
        ConfigType.CLASS,
        default=SIMPLE_HEADER_CONVERTER,
        importance=LOW,
        documentation="Converter of record headers for connectors that do not name their own.",
    )
    _define_converter_version(definition, "header")


def _define_converter_version(definition: ConfigDef, kind: str) -> None:
    definition.define(
        f"{kind}.converter.plugin.version",
        ConfigType.STRING,
        default=None,
        importance=LOW,
        documentation=f"Version or version range of the {kind} converter.",
    )


def _define_runtime(definition: ConfigDef) -> None:
    definition.define(
        "task.shutdown.graceful.timeout.ms",
        ConfigType.LONG,
        default=5_000,
        importance=LOW,
        documentation="Time limit for the stop of all tasks together; later ones are killed.",
    )
    definition.define(
        "offset.flush.interval.ms",
        ConfigType.LONG,
        default=60_000,
        importance=LOW,
        documentation="Time between offset commits of a task.",
    )
    definition.define(
        "offset.flush.timeout.ms",
        ConfigType.LONG,
        default=5_000,
        importance=LOW,
        documentation=("Time limit of an offset commit; no effect on tasks that run exactly-once."),
    )
    definition.define(
        "plugin.path",
        ConfigType.LIST,
        default=None,
        validator=any_list(allow_null=True),
        importance=LOW,
        documentation=(
            "Where plugins are: jars, and directories in which each jar or directory is one plugin "
            "with its own dependencies. References to config providers are not resolved here."
        ),
    )
    definition.define(
        "plugin.discovery",
        ConfigType.STRING,
        default="hybrid_warn",
        validator=CaseInsensitiveValidString.one_of(
            "only_scan", "service_load", "hybrid_warn", "hybrid_fail"
        ),
        importance=LOW,
        documentation=(
            "Way to find plugins: by entry points and service files, by scanning modules and "
            "class files, or both."
        ),
    )


def _define_permissions(definition: ConfigDef) -> None:
    """Define the plugins and settings that connectors may use, and the topics created for them."""
    definition.define(
        "config.providers",
        ConfigType.LIST,
        default=[],
        validator=any_list(),
        importance=LOW,
        documentation=(
            "Names of config providers. Each is set up by config.providers.<name>.class and "
            "config.providers.<name>.param.*, and used as ${name:path:key}."
        ),
    )
    definition.define(
        "connector.client.config.override.policy",
        ConfigType.STRING,
        default="All",
        importance=MEDIUM,
        documentation=(
            "Client settings that a connector may change: All, None, Principal (security "
            "settings only) or Allowlist."
        ),
    )
    definition.define(
        "connector.client.config.override.allowlist",
        ConfigType.LIST,
        default=[],
        validator=any_list(),
        importance=MEDIUM,
        documentation="Client settings a connector may change under the policy Allowlist.",
    )
    for name, text in (
        ("topic.creation.enable", "Whether source connectors may have topics created."),
        ("topic.tracking.enable", "Whether to record the topics that each connector uses."),
        ("topic.tracking.allow.reset", "Whether a request may empty a connector's list of topics."),
    ):
        definition.define(
            name, ConfigType.BOOLEAN, default=True, importance=LOW, documentation=text
        )


def _define_metrics(definition: ConfigDef) -> None:
    definition.define(
        "metrics.sample.window.ms",
        ConfigType.LONG,
        default=30_000,
        validator=Range.at_least(0),
        importance=LOW,
        documentation="Length of one sample of a rate or average.",
    )
    definition.define(
        "metrics.num.samples",
        ConfigType.INT,
        default=2,
        validator=Range.at_least(1),
        importance=LOW,
        documentation="Number of samples a rate or average is made of.",
    )
    definition.define(
        "metrics.recording.level",
        ConfigType.STRING,
        default="INFO",
        validator=ValidString.one_of("INFO", "DEBUG"),
        importance=LOW,
        documentation="Accepted for compatibility; there is one level of detail, the same as INFO.",
    )
    definition.define(
        "metric.reporters",
        ConfigType.LIST,
        default="org.apache.kafka.common.metrics.JmxReporter",
        validator=any_list(),
        importance=LOW,
        documentation="Accepted for compatibility; metrics are served for Prometheus.",
    )


def _define_rest_addresses(definition: ConfigDef) -> None:
    definition.define(
        "listeners",
        ConfigType.LIST,
        default="http://:8083",
        validator=ListenersValidator("listeners"),
        importance=LOW,
        documentation="Addresses of the REST server, http or https; port 0 takes a free port.",
    )
    definition.define(
        "rest.advertised.host.name",
        ConfigType.STRING,
        default=None,
        importance=LOW,
        documentation="Host name of this worker for other workers.",
    )
    definition.define(
        "rest.advertised.port",
        ConfigType.INT,
        default=None,
        importance=LOW,
        documentation="Port of this worker for other workers.",
    )
    definition.define(
        "rest.advertised.listener",
        ConfigType.STRING,
        default=None,
        importance=LOW,
        documentation="Protocol of this worker for other workers: http or https.",
    )


def _define_rest_headers(definition: ConfigDef) -> None:
    definition.define(
        "access.control.allow.origin",
        ConfigType.STRING,
        default="",
        importance=LOW,
        documentation="Origins that may use the REST API from a browser; *: any, blank: none.",
    )
    definition.define(
        "access.control.allow.methods",
        ConfigType.STRING,
        default="",
        importance=LOW,
        documentation="Methods that a browser of such an origin may use; blank: GET, POST, HEAD.",
    )
    definition.define(
        "response.http.headers.config",
        ConfigType.STRING,
        default="",
        validator=HeaderRulesValidator(),
        importance=LOW,
        documentation="Headers put on every response: comma list of [action] [name]:[value].",
    )


def _define_logs_and_logins(definition: ConfigDef) -> None:
    own = "A key of this agent alone."
    definition.define(
        "agent.oauthbearer.allowed.urls",
        ConfigType.LIST,
        default="",
        importance=LOW,
        documentation=(
            "URLs that a connector's overrides may name as sasl.oauthbearer.token.endpoint.url, "
            "beside those of the worker's own clients. Java workers have the system property "
            f"org.apache.kafka.sasl.oauthbearer.allowed.urls. {own}"
        ),
    )
    definition.define(
        "agent.log.kept.bytes",
        ConfigType.INT,
        default=65_536,
        validator=Range.at_least(0),
        importance=LOW,
        documentation=(
            "Memory for the last log lines of each connector and task, for pyconnect connectors "
            f"logs; 0 keeps none. {own}"
        ),
    )
    definition.define(
        "agent.log.dir",
        ConfigType.STRING,
        default=None,
        importance=LOW,
        documentation=(
            "Directory for a log file of each connector with the lines of its tasks; unset: none. "
            f"{own}"
        ),
    )
    for name, default, text in (
        ("agent.log.file.bytes", 10 << 20, "Size at which such a file is replaced by a new one."),
        ("agent.log.file.count", 5, "Most files of one connector, the newest included."),
    ):
        definition.define(
            name,
            ConfigType.INT,
            default=default,
            validator=Range.at_least(1),
            importance=LOW,
            documentation=f"{text} {own}",
        )


def _define_java(definition: ConfigDef) -> None:
    """Define the settings of the processes of Java connectors."""
    for name, default, text in (
        (
            "agent.java.home",
            None,
            "Home of the Java that runs Java plugins; unset: JAVA_HOME, else PATH.",
        ),
        (
            "agent.java.kafka.home",
            None,
            "Kafka whose jars Java plugins use; unset: KAFKA_HOME, else jars fetched once.",
        ),
        (
            "agent.java.heap",
            "256m",
            "Heap (-Xmx) of a Java connector's processes whose configuration sets none.",
        ),
        (
            "agent.java.heap.limit",
            "1g",
            "Largest heap that a connector's own agent.java.heap may ask for.",
        ),
        (
            "agent.java.options",
            "-XX:+UseSerialGC -Xmn12m",
            "Options of all Java processes. Without the key, those of connectors have -Xmn2m.",
        ),
    ):
        definition.define(
            name,
            ConfigType.STRING,
            default=default,
            importance=LOW,
            documentation=f"{text} A key of this agent alone.",
        )


def _define_admin_interface(definition: ConfigDef) -> None:
    definition.define(
        "rest.extension.classes",
        ConfigType.LIST,
        default="",
        validator=any_list(),
        importance=LOW,
        documentation="REST extensions of Java; this worker has none and refuses the key.",
    )
    definition.define(
        "admin.listeners",
        ConfigType.LIST,
        default=None,
        validator=ListenersValidator("admin.listeners", optional=True),
        importance=LOW,
        documentation=(
            "Addresses of the admin endpoints; unset: on the REST listeners; empty: nowhere."
        ),
    )
    for name, text in (
        ("basic.auth", "Properties file of users and passwords (user=password)"),
        ("bearer.token", "File of bearer tokens, one a line,"),
    ):
        definition.define(
            f"agent.admin.{name}.file",
            ConfigType.STRING,
            default=None,
            importance=LOW,
            documentation=(
                f"{text} for the admin interface below /agent; read at each request. Without "
                "credentials it is served on loopback listeners only. A key of this agent alone."
            ),
        )
