"""`pyconnect agent readiness`: the parts of a Java cluster that agents can and cannot run. Pure.

An agent runs Java connectors in Java processes, from the same `plugin.path`. Kafka's clients,
config providers and REST stay in Python: an agent cannot run Java classes in their place.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyconnect_cli.rest.answers import Plugin
from pyconnect_cli.rest.model import ConnectorInfo
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.security import parse_security

JAVA_NEEDS = "agents need Java 17 or newer and this jar on their plugin.path"
_CONNECT = "org.apache.kafka.connect"
PYTHON_CONNECTORS = frozenset(
    f"{_CONNECT}.{name}Connector" for name in ("file.FileStreamSource", "file.FileStreamSink")
)
"""Java's names of connectors that an agent has in Python."""
_KAFKAS_PARTS = r"org\.apache\.kafka\.connect\.(json|storage|converters|transforms)\..*"
_CONFLUENTS_PARTS = (
    r"io\.confluent\.connect\.(avro\.Avro|json\.JsonSchema|protobuf\.Protobuf)Converter"
)
PYTHON_PARTS = re.compile(f"{_KAFKAS_PARTS}|{_CONFLUENTS_PARTS}")
"""Converters, transformations and predicates that an agent has in Python too."""
PROVIDERS = frozenset(
    f"org.apache.kafka.common.config.provider.{name}ConfigProvider"
    for name in ("File", "Directory", "EnvVar")
)
_EXTENSIONS = "rest.extension.classes"
_EXTENSION_PACKAGE = "org.apache.kafka.connect.rest.basic.auth.extension."
_POLICY = "connector.client.config.override.policy"
_POLICIES = frozenset({"All", "None", "Principal", "Allowlist"})
_POLICY_SUFFIX = "ConnectorClientConfigOverridePolicy"
_CONVERTER_KEYS = ("key.converter", "value.converter", "header.converter")
_CLIENTS = ("producer", "consumer", "admin")
_JAVA_CLASSES = {
    "interceptor.classes": frozenset[str](),
    "partitioner.class": frozenset(
        {"DefaultPartitioner", "UniformStickyPartitioner", "RoundRobinPartitioner"}
    ),
    "partition.assignment.strategy": frozenset(
        {"RangeAssignor", "RoundRobinAssignor", "StickyAssignor", "CooperativeStickyAssignor"}
    ),
}
"""Client properties that name Java classes, with the simple names that agents know."""
_REFERENCE = re.compile(r"\$\{([^}:]*):(?:[^}]*:)?[^}]*\}")
_SUFFIX = re.compile(r"(Connector|Converter|Transformation|Predicate)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """One finding; `status` is ok, warning or failed, `about` a plugin, connector or worker."""

    about: str
    name: str
    status: str
    detail: str


def readiness(
    plugins: Sequence[Plugin],
    connectors: Sequence[ConnectorInfo],
    worker: Mapping[str, str] | None,
    *,
    agent: bool = False,
) -> list[Readiness]:
    """Return all findings; `worker`: the properties of a worker, None if not given.

    `agent`: an agent reported the plugins. An agent runs all plugins that it reports, and their
    class names do not show whether they are Java's or Python's.
    """
    findings = []
    for class_name in dict.fromkeys(plugin.class_name for plugin in plugins):
        if re.fullmatch(_KAFKAS_PARTS, class_name):
            continue
        detail = f"runs in Java; {JAVA_NEEDS}"
        if agent:
            detail = "an agent has it"
        elif class_name in PYTHON_CONNECTORS:
            detail = "runs in Python, or in Java where plugin.path has its jar"
        elif PYTHON_PARTS.fullmatch(class_name):
            detail = (
                "runs in Python with a Python connector; with a Java connector it runs in Java, "
                "and needs this jar on plugin.path"
            )
        findings.append(Readiness(about="plugin", name=class_name, status="ok", detail=detail))
    for each in connectors:
        config = {name: value for name, value in each.config.items() if value is not None}
        found = [
            *_classes(each, plugins, worker or {}, agent=agent),
            *([] if agent else _references(config, worker)),
            *(found for client in _CLIENTS for found in _client(config, f"{client}.override.")),
        ]
        findings += [
            Readiness(about="connector", name=each.name, status=status, detail=detail)
            for status, detail in found or [("ok", "an agent runs it as it is")]
        ]
    if not agent:
        findings += _worker(worker, plugins)
    return findings


def _classes(
    connector: ConnectorInfo, plugins: Sequence[Plugin], worker: Mapping[str, str], *, agent: bool
) -> Iterator[tuple[str, str]]:
    known: dict[str, str] = {}
    for plugin in plugins:
        simple = re.split(r"[.$]", plugin.class_name)[-1]
        names = (plugin.class_name, simple, _SUFFIX.sub("", simple))
        known |= dict.fromkeys(names, plugin.class_name)
    class_name = known.get(connector.class_name)
    if class_name is None:
        yield "warning", f"the worker that was asked has no {connector.class_name}"
    if agent or class_name not in PYTHON_CONNECTORS:
        return
    config = {**worker, **connector.config}
    types = [
        f"{key}.{alias.strip()}.type"
        for key in ("transforms", "predicates")
        for alias in (connector.config.get(key) or "").split(",")
        if alias.strip()
    ]
    for key in (*_CONVERTER_KEYS, *types):
        given = config.get(key)
        chosen = known.get(given, given) if given else None
        if chosen and not PYTHON_PARTS.fullmatch(chosen):
            detail = (
                f"{key} is {chosen}, a Java class, and an agent runs {class_name} in Python: put "
                "the connector's jar on plugin.path too, then all of it runs in Java"
            )
            yield "warning", detail


def _references(
    config: Mapping[str, str], worker: Mapping[str, str] | None
) -> Iterator[tuple[str, str]]:
    names = {name for value in config.values() for name in _REFERENCE.findall(value)}
    for name in sorted(names):
        if worker is None:
            missing = "give --worker-config to have its class checked"
            yield "warning", f"it uses the config provider {name}; {missing}"
            continue
        found = worker.get(f"config.providers.{name}.class", "").strip()
        if found and found not in PROVIDERS:
            yield "failed", f"it uses the config provider {name}: {_no_provider(found)}"


def _no_provider(class_name: str) -> str:
    if not class_name:
        return "missing: agents do not start with a config provider that has no class"
    return (
        f"{class_name} is a Java class, and agents resolve references in Python; there "
        f"are {', '.join(sorted(name.rpartition('.')[2] for name in PROVIDERS))} and Python plugins"
    )


def _client(properties: Mapping[str, str], prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the client properties below a prefix that Python's clients do not support."""
    given = {
        name.removeprefix(prefix): value
        for name, value in properties.items()
        if name.startswith(prefix)
    }
    for name, known in _JAVA_CLASSES.items():
        classes = filter(None, map(str.strip, given.get(name, "").split(",")))
        if not {each.rpartition(".")[2] for each in classes} <= known:
            yield "warning", f"{prefix}{name} has no effect: the clients of an agent are Python's"
    # The value of a reference is known only after the agent has resolved it.
    if any("${" in value for value in given.values()):
        return
    try:
        security = parse_security(given)
    except ClientPropertyError as error:
        yield "failed", f"below {prefix or 'no prefix'}: {error}"
        return
    for name in security.without_effect:
        yield "warning", f"{prefix}{name} has no effect in an agent"
    if security.sasl is not None and security.sasl.mechanism == "GSSAPI":
        detail = (
            f"{prefix}sasl.mechanism is GSSAPI: agents need a confluent-kafka that is built with "
            "Kerberos, which its wheels are not"
        )
        yield "warning", detail


def _worker(worker: Mapping[str, str] | None, plugins: Sequence[Plugin]) -> Iterator[Readiness]:
    def finding(name: str, status: str, detail: str) -> Readiness:
        return Readiness(about="worker", name=name, status=status, detail=detail)

    if worker is None:
        yield finding(
            "properties",
            "warning",
            "not checked: REST does not show config providers, REST extensions and client "
            "settings; give --worker-config",
        )
        return
    for extension in filter(None, map(str.strip, worker.get(_EXTENSIONS, "").split(","))):
        if extension.removeprefix(_EXTENSION_PACKAGE) == "BasicAuthSecurityRestExtension":
            detail = (
                "agents have this extension with its PropertyFileLoginModule: give them the JAAS"
                " file as the Java workers have it (KAFKA_OPTS)"
            )
            yield finding(_EXTENSIONS, "warning", detail)
        else:
            detail = (
                f"{extension}: agents run no REST extensions of Java and do not start with the key;"
                " use client certificates or a proxy that authenticates"
            )
            yield finding(_EXTENSIONS, "failed", detail)
    policy = worker.get(_POLICY, "All").strip()
    if policy.rpartition(".")[2].removesuffix(_POLICY_SUFFIX) not in _POLICIES:
        yield finding(_POLICY, "failed", f"{policy}: agents know {', '.join(sorted(_POLICIES))}")
    for name in filter(None, map(str.strip, worker.get("config.providers", "").split(","))):
        key = f"config.providers.{name}.class"
        found = worker.get(key, "").strip()
        if found not in PROVIDERS:
            yield finding(key, "failed", _no_provider(found))
    if worker.get("metric.reporters", "").strip():
        reason = "no effect: agents serve metrics for Prometheus at /metrics"
        yield finding("metric.reporters", "warning", reason)
    for client in ("", *(f"{name}." for name in _CLIENTS)):
        for status, detail in _client(worker, client):
            yield finding(f"{client}*" if client else "clients", status, detail)
    needs_java = any(
        not PYTHON_PARTS.fullmatch(plugin.class_name) and plugin.class_name not in PYTHON_CONNECTORS
        for plugin in plugins
    )
    if needs_java and not worker.get("plugin.path"):
        yield finding(
            "plugin.path",
            "warning",
            "not set: an agent finds plugins of Kafka's own jars if agent.java.kafka.home is set, "
            "others on plugin.path",
        )
