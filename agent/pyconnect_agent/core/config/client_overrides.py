"""Which client settings a connector may override, and for which clients.

Corresponds to the ``ConnectorClientConfigOverridePolicy`` classes of Kafka Connect (KIP-458,
KIP-1188) and to the override part of ``AbstractHerder.validateConnectorConfig``. Policies decide by
the names of Java's client keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from pyconnect_agent.core.config import below
from pyconnect_agent.core.config.client_keys import ClientKind, client_keys
from pyconnect_agent.core.config.config_infos import ConfigInfos, prefixed_infos
from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_api.configdef import ConfigType, ConfigValue, parse_type
from pyconnect_api.errors import ConfigException
from pyconnect_clients.token_login import ENDPOINT as TOKEN_ENDPOINT

OVERRIDE_PREFIXES = {
    ClientKind.PRODUCER: "producer.override.",
    ClientKind.CONSUMER: "consumer.override.",
    ClientKind.ADMIN: "admin.override.",
}

ALLOWED_URLS = "agent.oauthbearer.allowed.urls"
_PRINCIPAL_KEYS = frozenset({"sasl.jaas.config", "sasl.mechanism", "security.protocol"})
_SUFFIX = "ConnectorClientConfigOverridePolicy"


class OverridePolicyKind(Enum):
    """Connect's policies; the value is the alias, and the name in messages."""

    ALL = "All"
    NONE = "None"
    PRINCIPAL = "Principal"
    ALLOWLIST = "Allowlist"


@dataclass(frozen=True, slots=True)
class OverridePolicy:
    """A policy that decides about one key at a time; ``allowlist`` counts for ALLOWLIST only.

    ``token_urls``: the only URLs from which a connector may have tokens fetched (KIP-1139). A
    connector's config comes over REST, and a URL makes the worker read a file or send a request.
    """

    kind: OverridePolicyKind
    allowlist: frozenset[str] = frozenset()
    token_urls: frozenset[str] = frozenset()

    @classmethod
    def of_worker(cls, worker: WorkerConfig) -> OverridePolicy:
        """Return the worker's policy; it allows the token URLs that the worker uses or lists."""
        policy = cls.parse(
            worker.connector_client_config_override_policy,
            worker.connector_client_config_override_allowlist,
        )
        own = {
            value.strip()
            for name, value in worker.originals.items()
            if name.endswith(TOKEN_ENDPOINT) and value
        }
        listed = parse_type(ALLOWED_URLS, worker.originals.get(ALLOWED_URLS), ConfigType.LIST)
        return replace(
            policy, token_urls=frozenset([*own, *listed] if isinstance(listed, list) else own)
        )

    @classmethod
    def parse(cls, name: str, allowlist: tuple[str, ...] = ()) -> OverridePolicy:
        """Return the policy of an alias or class name; raises ConfigException."""
        simple = name.strip().rpartition(".")[2].removesuffix(_SUFFIX)
        try:
            return cls(OverridePolicyKind(simple), frozenset(allowlist))
        except ValueError as error:
            options = ", ".join(kind.value for kind in OverridePolicyKind)
            raise ConfigException(
                f"Invalid value {name} for configuration "
                f"connector.client.config.override.policy: must be one of {options}"
            ) from error

    def refusal(self, key: str, value: str | None) -> str | None:
        """Return why ``key`` may not be overridden with ``value``, None when it may."""
        match self.kind:
            case OverridePolicyKind.ALL:
                allowed = True
            case OverridePolicyKind.NONE:
                allowed = False
            case OverridePolicyKind.PRINCIPAL:
                allowed = key in _PRINCIPAL_KEYS
            case OverridePolicyKind.ALLOWLIST:
                allowed = key in self.allowlist
        if not allowed:
            return (
                f"The '{self.kind.value}' policy does not allow '{key}' to be overridden "
                "in the connector configuration."
            )
        if key != TOKEN_ENDPOINT or not value or value.strip() in self.token_urls:
            return None
        return (
            f"The value of '{key}' is not allowed in the connector configuration: neither the "
            f"worker's own clients nor '{ALLOWED_URLS}' of the worker name this URL."
        )


def overrides_of(config: Mapping[str, str | None], kind: ClientKind) -> dict[str, str | None]:
    """Return a connector's overrides for one kind of client, prefix removed."""
    return below(config, OVERRIDE_PREFIXES[kind])


def client_servers(
    config: Mapping[str, str | None], worker: WorkerConfig, kind: ClientKind
) -> frozenset[str]:
    """Return the bootstrap servers for a connector's clients of one kind."""
    text = config.get(f"{OVERRIDE_PREFIXES[kind]}bootstrap.servers") or worker.originals.get(
        f"{kind.name.lower()}.bootstrap.servers"
    )
    parsed = parse_type("bootstrap.servers", text, ConfigType.LIST)
    return frozenset(parsed if isinstance(parsed, list) else worker.bootstrap_servers)


def check_overrides(
    config: Mapping[str, str | None], kind: ClientKind, policy: OverridePolicy
) -> None:
    """Raise ConfigException when an override is not allowed; the start repeats this check."""
    overrides = overrides_of(config, kind)
    errors = [error for key, text in overrides.items() if (error := policy.refusal(key, text))]
    if errors:
        raise ConfigException(f"Client Config Overrides not allowed [{', '.join(errors)}]")


def override_infos(
    config: Mapping[str, str | None], kind: ClientKind, policy: OverridePolicy, release: str
) -> ConfigInfos:
    """Validate a connector's overrides for one kind of client.

    Raises ConfigException for a value that is not of the key's type, as Connect does.
    """
    keys = client_keys(kind, release)
    values = []
    for name, raw in overrides_of(config, kind).items():
        key = keys.get(name)
        value = raw if key is None else parse_type(name, raw, key.type)
        error = policy.refusal(name, raw)
        values.append(ConfigValue(name, value, error_messages=[error] if error else []))
    return prefixed_infos(keys, values, OVERRIDE_PREFIXES[kind])
