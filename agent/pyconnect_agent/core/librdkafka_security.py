"""TLS and SASL settings of Kafka's Java clients in librdkafka's words.

Layer: core. PEM is taken as files or as text, PKCS#12 as a key store; JKS files cannot be read by
librdkafka and are refused with the way out. Of the SASL mechanisms PLAIN, SCRAM, OAUTHBEARER and
GSSAPI are translated.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyconnect_agent.core.client_keys import is_default
from pyconnect_agent.core.jaas import JaasEntry, parse_jaas
from pyconnect_api.errors import ConfigException

SECURITY_PREFIXES = ("security.", "ssl.", "sasl.")

_PEM_ENDINGS = (".pem", ".crt", ".cer", ".key")
_PKCS12_ENDINGS = (".p12", ".pfx", ".pkcs12")
_SAME = frozenset(
    {"sasl.mechanism", "sasl.kerberos.service.name", "sasl.kerberos.min.time.before.relogin"}
)
_TRANSLATED_TOGETHER = frozenset(
    {
        "security.protocol",
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "ssl.truststore.location",
        "ssl.truststore.certificates",
        "ssl.truststore.type",
        "ssl.truststore.password",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
    }
)


def translate_security(config: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return librdkafka properties and warnings for the ``security.``, ``ssl.`` and ``sasl.`` keys.

    Raises ConfigException for stores librdkafka cannot read and for an unreadable JAAS entry.
    """
    properties: dict[str, str] = {}
    warnings = [
        f"The client setting '{name}' has no effect in this worker"
        for name, value in config.items()
        if name not in _SAME | _TRANSLATED_TOGETHER and value != "" and not is_default(name, value)
    ]
    protocol = config.get("security.protocol", "PLAINTEXT").upper()
    if "security.protocol" in config:
        properties["security.protocol"] = protocol.lower()
    if protocol in ("SSL", "SASL_SSL"):
        properties |= _trust(config) | _identity(config)
        algorithm = config.get("ssl.endpoint.identification.algorithm")
        if algorithm is not None:
            properties["ssl.endpoint.identification.algorithm"] = algorithm.lower() or "none"
    if protocol in ("SASL_PLAINTEXT", "SASL_SSL"):
        properties |= {name: config[name] for name in _SAME if config.get(name)}
        properties |= _login(config, config.get("sasl.mechanism", "GSSAPI").upper())
    return properties, warnings


def _trust(config: Mapping[str, str]) -> dict[str, str]:
    if config.get("ssl.truststore.certificates"):
        return {"ssl.ca.pem": config["ssl.truststore.certificates"]}
    location = config.get("ssl.truststore.location")
    if not location:
        return {}
    if _store_type(config, "truststore", location) != "PEM":
        raise ConfigException(
            f"Invalid value {location} for configuration ssl.truststore.location: only PEM files "
            "can be read. Export the certificates with `keytool -exportcert -rfc` and set "
            "ssl.truststore.type=PEM."
        )
    return {"ssl.ca.location": location}


def _identity(config: Mapping[str, str]) -> dict[str, str]:
    password = config.get("ssl.key.password")
    key_password = {"ssl.key.password": password} if password else {}
    if config.get("ssl.keystore.key"):
        chain = config.get("ssl.keystore.certificate.chain", "")
        certificate = {"ssl.certificate.pem": chain} if chain else {}
        return {"ssl.key.pem": config["ssl.keystore.key"]} | certificate | key_password
    location = config.get("ssl.keystore.location")
    if not location:
        return {}
    match _store_type(config, "keystore", location):
        case "PEM":
            return {
                "ssl.certificate.location": location,
                "ssl.key.location": location,
            } | key_password
        case "PKCS12":
            store_password = config.get("ssl.keystore.password")
            return {"ssl.keystore.location": location} | (
                {"ssl.keystore.password": store_password} if store_password else {}
            )
        case _:
            raise ConfigException(
                f"Invalid value {location} for configuration ssl.keystore.location: JKS files "
                "cannot be read. Convert it with `keytool -importkeystore -deststoretype PKCS12` "
                "and set ssl.keystore.type=PKCS12."
            )


def _store_type(config: Mapping[str, str], store: str, location: str) -> str:
    """Return PEM, PKCS12 or JKS: the type if given, else what the file's name says."""
    given = config.get(f"ssl.{store}.type", "").upper()
    if given:
        return given
    if location.lower().endswith(_PEM_ENDINGS):
        return "PEM"
    return "PKCS12" if location.lower().endswith(_PKCS12_ENDINGS) else "JKS"


def _login(config: Mapping[str, str], mechanism: str) -> dict[str, str]:
    text = config.get("sasl.jaas.config")
    entry = parse_jaas(text) if text else JaasEntry(login_module="", options={})
    options = entry.options
    match mechanism:
        case "OAUTHBEARER":
            return _oauth(config, options)
        case "GSSAPI":
            kerberos = {
                "sasl.kerberos.keytab": options.get("keyTab"),
                "sasl.kerberos.principal": options.get("principal"),
            }
            return {name: value for name, value in kerberos.items() if value}
        case _:
            login = {
                "sasl.username": options.get("username"),
                "sasl.password": options.get("password"),
            }
            return {name: value for name, value in login.items() if value is not None}


def _oauth(config: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    endpoint = config.get("sasl.oauthbearer.token.endpoint.url")
    if not endpoint:
        # Kafka's unsecured tokens, for tests: the claim `sub` is the principal.
        principal = options.get("unsecuredLoginStringClaim_sub")
        if principal is None:
            return {}
        return {
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.config": f"principal={principal}",
        }
    prefix = "sasl.oauthbearer.client.credentials."
    oidc = {
        "sasl.oauthbearer.client.id": config.get(f"{prefix}client.id", options.get("clientId")),
        "sasl.oauthbearer.client.secret": config.get(
            f"{prefix}client.secret", options.get("clientSecret")
        ),
        "sasl.oauthbearer.scope": config.get("sasl.oauthbearer.scope", options.get("scope")),
        "sasl.oauthbearer.extensions": ",".join(
            f"{name.removeprefix('extension_')}={value}"
            for name, value in options.items()
            if name.startswith("extension_")
        ),
    }
    return {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": endpoint,
    } | {name: value for name, value in oidc.items() if value}
