"""The configuration in an operator's view: sources of values, and hidden secrets."""

from pyconnect_agent.core.config.effective import (
    HIDDEN,
    ConfigSource,
    effective_values,
    literal_secrets,
)
from pyconnect_agent.core.config.worker_config import DistributedConfig
from tests.support.agents.worker_properties import PROPERTIES
from tests.support.cases import cases


def shown(name: str, value: str, **others: str) -> tuple[str | None, ConfigSource]:
    """Return the shown form of one property of the file."""
    written = {**PROPERTIES, **others, name: value}
    config = DistributedConfig.parse(PROPERTIES)
    found = {entry.name: entry for entry in effective_values(config, written)}[name]
    return found.value, found.source


@cases(
    "name",
    "ssl.key.password", "ssl.keystore.key", "sasl.jaas.config", "producer.sasl.jaas.config",
    "listeners.https.ssl.keystore.password", "value.converter.basic.auth.user.info",
    "config.providers.vault.param.token", "my.Secret",
)  # fmt: skip
def test_secrets_are_hidden(name: str) -> None:
    """Known passwords are hidden, and all keys with such a name, under any prefix."""
    assert shown(name, "tiger") == (HIDDEN, ConfigSource.FILE)


@cases(
    "name, value",
    ("agent.admin.basic.auth.file", "/etc/users"),
    ("key.converter.schemas.enable", "true"),
    ("sasl.oauthbearer.token.endpoint.url", "https://login.example/token"),
    ("ssl.keystore.location", "/etc/store"),
    ("group.id", "g"),
    ("ssl.key.password", "${file:/run/secrets:key}"),
    ("ssl.key.password", ""),
)
def test_values_without_secrets_are_shown(name: str, value: str) -> None:
    """Locations of secrets and references to them are shown, because operators look for them."""
    assert shown(name, value) == (value, ConfigSource.FILE)


def test_secrets_within_texts_are_hidden() -> None:
    """Secrets in addresses and parameters are hidden whatever the key; references are shown."""
    assert shown("sasl.jaas.config", 'x password="${a:b:c}" y="tiger"')[0] == HIDDEN
    value, _ = shown("value.converter.schema.registry.url", "http://u:tiger@a:1,http://v:cat@b:2")
    assert value == f"http://u:{HIDDEN}@a:1,http://v:{HIDDEN}@b:2"
    url = "jdbc:mysql://db/x?password={}&user=ann"
    assert shown("url", url.format("tiger"))[0] == url.format(HIDDEN)
    assert shown("url", url.format("${file:/f:p}"))[0] == url.format("${file:/f:p}")


def test_values_from_the_environment_are_marked() -> None:
    """A value that a config provider of environment variables supplies has that source."""
    package = "org.apache.kafka.common.config.provider"
    providers = {
        "config.providers": "env, file",
        "config.providers.env.class": f"{package}.EnvVarConfigProvider",
        "config.providers.file.class": f"{package}.FileConfigProvider",
    }
    expected = ("${env:GROUP}", ConfigSource.ENVIRONMENT)
    assert shown("group.id", "${env:GROUP}", **providers) == expected
    assert shown("group.id", "${file:/f:g}", **providers)[1] is ConfigSource.FILE


def test_defaults_are_listed_with_the_rest() -> None:
    """All known keys are listed in order, and the unknown keys of the file too."""
    config = DistributedConfig.parse(PROPERTIES)
    values = effective_values(config, {**PROPERTIES, "zzz": "1"})
    names = [value.name for value in values]
    assert names == sorted(names)
    assert set(DistributedConfig.definition().keys) | {"zzz"} == set(names)
    by_name = {value.name: value for value in values}
    expected = {"name": "session.timeout.ms", "value": "10000", "source": "default"}
    assert by_name["session.timeout.ms"].to_json() == expected
    assert by_name["admin.listeners"].value is None


@cases(
    "name, value, secrets",
    ("db.password", " open sesame ", {" open sesame ", "open sesame"}),
    ("connection.url", "postgresql://ann:tiger@db/x", {"tiger"}),
    ("connection.url", "jdbc:mysql://db/x?user=ann&password=tiger&ssl=1", {"tiger"}),
    (
        "consumer.override.sasl.jaas.config",
        'x.PlainLoginModule required username="ann" password="tiger";',
        {"tiger", 'x.PlainLoginModule required username="ann" password="tiger";'},
    ),
    ("url", "jdbc:x://ann:p@ss%20w@${env:DB}/x", {"p@ss%20w", "p@ss w"}),
    ("url", "jdbc:x://ann:pass/wd@db/x", {"pass/wd"}),
    ("url", "jdbc:x://db/x?sslpassword='ti ger'&a=b", {"ti ger", "ti%20ger"}),
    ("headers", "Authorization: Bearer abc.def|X-A: b", {"abc.def"}),
    ("http.headers.authorization", "Basic dGlnZXI=", {"Basic dGlnZXI="}),
    ("db.password", "${file:/f:p}", set()),
    ("url", "jdbc:x://ann:${env:P}@db/x?password=${env:P}", set()),
    ("url", "http://host:8083/a@b", set()),
    ("db.password.file", "/etc/password", set()),
    ("token.enabled", "true", set()),
    ("pin.password", "123", set()),
    ("topics", "secret", set()),
    ("db.password", None, set()),
)
def test_secrets_in_plain_text_are_found(name: str, value: str | None, secrets: set[str]) -> None:
    """Secrets are found in addresses and other notations too; references and short ones are not."""
    found = literal_secrets({name: value})
    assert secrets <= found.keys()
    assert bool(found) == bool(secrets)
