"""Protocol, trust, identity and login: the security properties of Java's clients as a value. Pure.

Corresponds to ``SecurityProtocol``, ``SslConfigs``, ``SaslConfigs``, ``DefaultSslEngineFactory``
(PEM: KIP-651) and the login modules of Kafka. The logins are PLAIN, SCRAM, GSSAPI and OAUTHBEARER
(`token_login`), to which AWS_MSK_IAM is mapped, as AWS describes it for non-Java clients.
Settings that the protocol does not use are ignored, as in Java.

The value is translated into settings of both client libraries. Settings that librdkafka cannot
read keep Java's names until a client is made: `key_stores.with_pem` replaces stores by PEM,
`connections.with_token_callback` a login by token by a callback. `connections.secured_arguments`
adds kafka-python's objects: the context of TLS and the provider of tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.jaas import JAAS_CONFIG, JaasEntry, parse_jaas
from pyconnect_clients.token_login import MSK_MECHANISM, TOKEN_KEYS, TokenLogin, parse_token_login

PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
TOKEN_MECHANISMS = ("OAUTHBEARER", MSK_MECHANISM)
MECHANISMS = (*PASSWORD_MECHANISMS, *TOKEN_MECHANISMS, "GSSAPI")

_MECHANISM = "sasl.mechanism"
_SERVICE = "sasl.kerberos.service.name"
_RELOGIN = "sasl.kerberos.min.time.before.relogin"

SASL_KEYS = TOKEN_KEYS | {_SERVICE, _RELOGIN}
"""The ``sasl.`` properties that this module reads; the mechanism decides about the handler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordLogin:
    """The login of PLAIN and SCRAM."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosLogin:
    """The login of GSSAPI; None: the library's default. `relogin_ms` is a number as text."""

    service_name: str | None
    keytab: str | None
    principal: str | None
    relogin_ms: str | None


Login = PasswordLogin | TokenLogin | KerberosLogin


@dataclass(frozen=True, slots=True, kw_only=True)
class Sasl:
    """The mechanism for brokers, and its settings."""

    mechanism: str
    login: Login

    @property
    def username(self) -> str | None:
        """The user name for the broker; None if it depends on a token or ticket."""
        return self.login.username if isinstance(self.login, PasswordLogin) else None


def parse_sasl(properties: Mapping[str, str]) -> Sasl:
    """Parse trimmed properties for a protocol with SASL.

    Raises ClientPropertyError for an unknown mechanism, or for missing credentials.
    """
    mechanism = properties.get(_MECHANISM, "GSSAPI").upper()
    text = properties.get(JAAS_CONFIG)
    entry = parse_jaas(text) if text else JaasEntry(login_module="", options={})
    match mechanism:
        case "OAUTHBEARER" | "AWS_MSK_IAM":
            login: Login = parse_token_login(mechanism, properties, entry)
            mechanism = "OAUTHBEARER"
        case "GSSAPI":
            login = KerberosLogin(
                service_name=properties.get(_SERVICE) or entry.options.get("serviceName"),
                keytab=entry.options.get("keyTab"),
                principal=entry.options.get("principal"),
                relogin_ms=properties.get(_RELOGIN),
            )
        case "PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512":
            for needed in ("username", "password"):
                if needed not in entry.options:
                    raise ClientPropertyError(
                        JAAS_CONFIG,
                        f"{mechanism} needs a {needed}",
                        f'add {needed}="..." to the login module\'s options',
                    )
            login = PasswordLogin(
                username=entry.options["username"], password=entry.options["password"]
            )
        case _:
            raise ClientPropertyError(
                _MECHANISM, f"{mechanism} is not supported", f"use one of {', '.join(MECHANISMS)}"
            )
    return Sasl(mechanism=mechanism, login=login)


ANONYMOUS = "User:ANONYMOUS"
SECURITY_PREFIXES = ("security.", "ssl.", "sasl.")
TRUST_STORE = "ssl.truststore"
KEY_STORE = "ssl.keystore"
STORE_TYPES = ("PEM", "PKCS12", "JKS")

_PEM_ENDINGS = (".pem", ".crt", ".cer", ".key")
_PROTOCOL = "security.protocol"
_ALGORITHM = "ssl.endpoint.identification.algorithm"
_CERTIFICATES = f"{TRUST_STORE}.certificates"
_KEY = f"{KEY_STORE}.key"
_CHAIN = f"{KEY_STORE}.certificate.chain"
_KNOWN = SASL_KEYS | {
    _PROTOCOL,
    _ALGORITHM,
    "ssl.key.password",
    _CERTIFICATES,
    _KEY,
    _CHAIN,
    *(f"{store}.{what}" for store in (TRUST_STORE, KEY_STORE) for what in ("location", "type")),
    *(f"{store}.password" for store in (TRUST_STORE, KEY_STORE)),
}
_JAVA_NAMES = {
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.username": "sasl.jaas.config",
    "sasl.password": "sasl.jaas.config",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": _CERTIFICATES,
    "ssl.certificate.location": "ssl.keystore.location",
    "ssl.certificate.pem": _CHAIN,
    "ssl.key.location": "ssl.keystore.location",
    "ssl.key.pem": _KEY,
}
"""Names that differ between Java and librdkafka."""


class Protocol(Enum):
    """The security protocol; names and meaning are Kafka's."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


@dataclass(frozen=True, slots=True, kw_only=True)
class PemFile:
    """A file of certificates, or of key and certificates, that is PEM by its type or its name."""

    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFile:
    """A file whose content shows whether it is JKS, PKCS#12 or PEM, like Java's key stores.

    `store` is the prefix of its keys, `type` the type that they state, if any.
    """

    store: str
    location: str
    type: str | None
    password: str | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PemCertificates:
    """Certificates to trust, as text."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PemIdentity:
    """A private key and its certificate chain, as texts."""

    key: str = field(repr=False)
    chain: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Trusted certificates (None: the system's) and the client's key (None: no key)."""

    trust: PemCertificates | PemFile | StoreFile | None = None
    identity: PemIdentity | PemFile | StoreFile | None = None
    key_password: str | None = field(repr=False, default=None)
    checks_host_name: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """The settings of the properties; `without_effect`: security keys that no client here uses.

    `tls` and `sasl` are set exactly if the protocol has them.
    """

    protocol: Protocol = Protocol.PLAINTEXT
    tls: Tls | None = None
    sasl: Sasl | None = None
    without_effect: tuple[str, ...] = ()


def parse_security(properties: Mapping[str, str | None]) -> Security:
    """Parse Java's names; values are trimmed as in Java, empty and null ones count as unset.

    Raises ClientPropertyError for values that are not valid or contradict each other.
    """
    trimmed = {name: value.strip() for name, value in properties.items() if value is not None}
    given = {name: text for name, text in trimmed.items() if text}
    text = given.get(_PROTOCOL, Protocol.PLAINTEXT.value)
    try:
        protocol = Protocol(text.upper())
    except ValueError as exc:
        raise ClientPropertyError(
            _PROTOCOL,
            f"{text} is not a protocol of Kafka",
            f"use one of {', '.join(protocol.value for protocol in Protocol)}",
        ) from exc
    return Security(
        protocol=protocol,
        tls=_tls(given, trimmed.get(_ALGORITHM, "https"))
        if protocol.value.endswith("SSL")
        else None,
        sasl=parse_sasl(given) if protocol.value.startswith("SASL") else None,
        without_effect=tuple(
            name for name in given if name.startswith(SECURITY_PREFIXES) and name not in _KNOWN
        ),
    )


def principal_of(properties: Mapping[str, str | None]) -> str | None:
    """Return a client's principal; None if its properties do not show it (TLS, tokens, secrets).

    A user name is the principal `User:<name>` unless the broker maps it to another one.
    """
    protocol = (properties.get(_PROTOCOL) or Protocol.PLAINTEXT.value).strip().upper()
    if protocol == Protocol.PLAINTEXT.value:
        return ANONYMOUS
    mechanism = (properties.get("sasl.mechanism") or "").strip().upper()
    if not protocol.startswith("SASL_") or mechanism not in PASSWORD_MECHANISMS:
        return None
    try:
        username = parse_jaas(properties.get(JAAS_CONFIG) or "").options.get("username")
    except ClientPropertyError:
        return None
    return f"User:{username}" if username and "${" not in username else None


def refuse_other_names(properties: Mapping[str, str]) -> None:
    """Raise ClientPropertyError for a name of librdkafka, which Java's clients do not know."""
    for name, java in _JAVA_NAMES.items():
        if name in properties:
            raise ClientPropertyError(
                name, "this is librdkafka's name", f"give it as Java's clients take it: {java}"
            )


def _tls(given: Mapping[str, str], algorithm: str) -> Tls:
    if algorithm.lower() not in ("", "https"):
        raise ClientPropertyError(
            _ALGORITHM,
            f"{algorithm} is not supported",
            "write https, or leave the value empty to accept any host name",
        )
    certificates = given.get(_CERTIFICATES)
    if certificates is not None:
        _require_text_only(given, TRUST_STORE, _CERTIFICATES)
    return Tls(
        trust=_file(given, TRUST_STORE)
        if certificates is None
        else PemCertificates(text=certificates),
        identity=_identity(given),
        key_password=given.get("ssl.key.password"),
        checks_host_name=algorithm != "",
    )


def _identity(given: Mapping[str, str]) -> PemIdentity | PemFile | StoreFile | None:
    key, chain = given.get(_KEY), given.get(_CHAIN)
    if key is None and chain is None:
        store = _file(given, KEY_STORE)
        if isinstance(store, StoreFile) and store.type is not None and store.password is None:
            raise ClientPropertyError(
                f"{KEY_STORE}.password", f"it is missing, and {store.location} needs one"
            )
        return store
    if key is None or chain is None:
        missing, there = (_KEY, _CHAIN) if key is None else (_CHAIN, _KEY)
        raise ClientPropertyError(missing, f"it is missing, and {there} is given", "give both")
    _require_text_only(given, KEY_STORE, _KEY)
    return PemIdentity(key=key, chain=chain)


def _require_text_only(given: Mapping[str, str], store: str, text_key: str) -> None:
    location, kind = given.get(f"{store}.location"), _type(given, store)
    if location is not None:
        raise ClientPropertyError(
            f"{store}.location", f"{text_key} is given too", "give the file or the text"
        )
    if kind not in (None, "PEM"):
        raise ClientPropertyError(
            f"{store}.type", f"it is {kind}, and {text_key} is PEM", f"set {store}.type=PEM"
        )


def _file(given: Mapping[str, str], store: str) -> PemFile | StoreFile | None:
    location, kind = given.get(f"{store}.location"), _type(given, store)
    if location is None:
        return None
    if kind == "PEM" or (kind is None and location.lower().endswith(_PEM_ENDINGS)):
        return PemFile(location=location)
    return StoreFile(
        store=store, location=location, type=kind, password=given.get(f"{store}.password")
    )


def _type(given: Mapping[str, str], store: str) -> str | None:
    kind = given.get(f"{store}.type")
    if kind is not None and kind.upper() not in STORE_TYPES:
        raise ClientPropertyError(
            f"{store}.type",
            f"{kind} is not supported",
            f"use {', '.join(STORE_TYPES)}: keytool -importkeystore -deststoretype PKCS12 converts",
        )
    return None if kind is None else kind.upper()


def librdkafka_settings(security: Security) -> dict[str, str]:
    """Return librdkafka's properties; stores and tokens still have Java's names."""
    settings = {"security.protocol": security.protocol.value.lower()}
    if security.tls is not None:
        settings |= tls_settings(security.tls)
    if security.sasl is None:
        return settings
    match security.sasl.login:
        case TokenLogin(properties=properties):
            return settings | dict(properties)
        case PasswordLogin(username=username, password=password):
            login: dict[str, str | None] = {"sasl.username": username, "sasl.password": password}
        case KerberosLogin() as kerberos:
            login = {
                "sasl.kerberos.service.name": kerberos.service_name,
                "sasl.kerberos.keytab": kerberos.keytab,
                "sasl.kerberos.principal": kerberos.principal,
                "sasl.kerberos.min.time.before.relogin": kerberos.relogin_ms,
            }
    settings["sasl.mechanism"] = security.sasl.mechanism
    return settings | {name: text for name, text in login.items() if text is not None}


def tls_settings(tls: Tls) -> dict[str, str]:
    """Return the `ssl.` properties of librdkafka."""
    settings = {
        "ssl.endpoint.identification.algorithm": "https" if tls.checks_host_name else "none"
    }
    match tls.trust:
        case PemCertificates(text=text):
            settings["ssl.ca.pem"] = text
        case PemFile(location=location):
            settings["ssl.ca.location"] = location
        case StoreFile() as store:
            settings |= _store(store)
    match tls.identity:
        case PemIdentity(key=key, chain=chain):
            settings |= {"ssl.key.pem": key, "ssl.certificate.pem": chain}
        case PemFile(location=location):
            settings |= {"ssl.certificate.location": location, "ssl.key.location": location}
        case StoreFile() as store:
            settings |= _store(store)
    if tls.identity is not None and tls.key_password is not None:
        settings["ssl.key.password"] = tls.key_password
    return settings


def _store(store: StoreFile) -> dict[str, str]:
    named = {"location": store.location, "type": store.type, "password": store.password}
    return {f"{store.store}.{what}": text for what, text in named.items() if text is not None}


def kafka_python_arguments(security: Security) -> dict[str, object]:
    """Return the arguments of kafka-python's clients that are texts."""
    arguments: dict[str, object] = {"security_protocol": security.protocol.value}
    if security.sasl is None:
        return arguments
    arguments["sasl_mechanism"] = security.sasl.mechanism
    match security.sasl.login:
        case PasswordLogin(username=username, password=password):
            arguments |= {"sasl_plain_username": username, "sasl_plain_password": password}
        case KerberosLogin(service_name=service_name):
            if service_name is not None:
                arguments["sasl_kerberos_service_name"] = service_name
        case TokenLogin():
            pass
    return arguments
