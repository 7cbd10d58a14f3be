"""Users of the REST interface, their roles, and which request a role may send.

No Kafka counterpart. The table names the lowest role of each endpoint; an endpoint that is not in
it is for admins. A user's patterns limit the connectors; a limited user may not use endpoints that
are about the whole worker.

This module has the names and the credentials file of Apache's REST extension for users and
passwords: ``BasicAuthSecurityRestExtension`` and ``PropertyFileLoginModule``.
"""

import hashlib
import hmac
import re
import shlex
import tomllib
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import unquote, urlsplit

from pyconnect_api.errors import ConfigException
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.jaas import jaas_file_entry


class UserRole(IntEnum):
    """The role of a user; each role includes the rights of the previous one."""

    VIEWER = 1
    OPERATOR = 2
    EDITOR = 3
    ADMIN = 4


ANY_CLIENT, WORKERS = "anyone", "workers"
"""Endpoints without users: probes, and requests that workers sign."""

ENDPOINTS: Mapping[tuple[str, str], tuple[str, bool]] = {
    (method, template): (role, "whole" in rest)
    for method, template, role, *rest in map(
        str.split,
        """
GET     /                                             viewer
GET     /health                                       anyone
GET     /connectors                                   viewer
POST    /connectors                                   editor
GET     /connectors/{connector}                       viewer
DELETE  /connectors/{connector}                       editor
GET     /connectors/{connector}/config                viewer
PUT     /connectors/{connector}/config                editor
PATCH   /connectors/{connector}/config                editor
GET     /connectors/{connector}/tasks                 viewer
POST    /connectors/{connector}/tasks                 workers
PUT     /connectors/{connector}/fence                 workers
GET     /connectors/{connector}/status                viewer
GET     /connectors/{connector}/tasks/{task}/status   viewer
PUT     /connectors/{connector}/pause                 operator
PUT     /connectors/{connector}/resume                operator
PUT     /connectors/{connector}/stop                  operator
POST    /connectors/{connector}/restart               operator
POST    /connectors/{connector}/tasks/{task}/restart  operator
GET     /connectors/{connector}/topics                viewer
PUT     /connectors/{connector}/topics/reset          operator
GET     /connectors/{connector}/offsets               viewer
PATCH   /connectors/{connector}/offsets               operator
DELETE  /connectors/{connector}/offsets               operator
GET     /connector-plugins                            viewer
GET     /connector-plugins/{plugin}/config            viewer
PUT     /connector-plugins/{plugin}/config/validate   viewer
GET     /admin/loggers                                viewer
GET     /admin/loggers/{logger}                       viewer
PUT     /admin/loggers/{logger}                       admin     whole
GET     /agent                                        viewer    whole
GET     /agent/config                                 viewer    whole
GET     /agent/connectors                             viewer    whole
GET     /agent/tasks                                  viewer    whole
GET     /agent/metrics                                viewer    whole
GET     /agent/metrics.json                           viewer    whole
GET     /agent/acls                                   viewer    whole
GET     /agent/journal                                viewer
POST    /agent/tasks/{connector}/{task}/kill          operator
GET     /agent/tasks/{connector}/{task}/stacks        operator
GET     /agent/connectors/{connector}/logs            operator
POST    /agent/drain                                  admin     whole
POST    /agent/phase                                  admin     whole
""".strip().splitlines(),
    )
}
"""By method and path: the lowest role, and whether users of some connectors only are refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """`password` and `tokens` are hashes; `certificates` are subjects as `subject_text` writes."""

    name: str
    role: UserRole
    connectors: tuple[str, ...] = ("*",)
    password: str | None = field(default=None, repr=False)
    tokens: frozenset[str] = field(default=frozenset(), repr=False)
    certificates: frozenset[str] = frozenset()

    @property
    def sees_secrets(self) -> bool:
        """Whether the user sees the secrets in configs, as editors have to."""
        return self.role >= UserRole.EDITOR

    def has_connector(self, connector: str) -> bool:
        return any(fnmatchcase(connector, pattern) for pattern in self.connectors)

    def refusal(self, method: str, template: str, connector: str | None) -> str | None:
        """Return why the user may not send a request, None if allowed.

        `connector`: the one in the path, None without one.
        """
        needed, whole = ENDPOINTS.get((method, template), (UserRole.ADMIN.name, True))
        if needed == WORKERS:
            return "Only workers send this request, and sign it."
        if needed != ANY_CLIENT and self.role < UserRole[needed.upper()]:
            return (
                f"{self.name} has the role {self.role.name.lower()}; {method} {template} needs"
                f" {needed.lower()}."
            )
        if connector is not None and not self.has_connector(connector):
            return self.no_connector(connector)
        if whole and "*" not in self.connectors:
            return f"{self.name} is limited to some connectors; {method} {template} is not."
        return None

    def no_connector(self, connector: str) -> str:
        patterns = ", ".join(self.connectors)
        return f"{self.name} is limited to connectors {patterns}, and {connector} is none of them."


def read_users(text: str, *, source: str) -> tuple[User, ...]:
    """Return the users of a TOML text; a ConfigException names `source`, user and fault."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigException(f"{source}: this is not TOML: {error}") from error
    users = tuple(_user(name, table, f"{source}: user {name}") for name, table in tables.items())
    for kind in ("tokens", "certificates"):
        given = [each for user in users for each in getattr(user, kind)]
        if len(given) != len(set(given)):
            raise ConfigException(f"{source}: two users have one of {kind} in common.")
    return users


_MEMBERS = ("role", "connectors", "password", "tokens", "certificates")
_TOKEN_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_SCRYPT = {"n": 2**14, "r": 8, "p": 1}


def _user(name: str, table: Any, place: str) -> User:
    if not isinstance(table, dict):
        raise ConfigException(f'{place}: write [{name}] and role = "viewer" below it.')
    if unknown := table.keys() - set(_MEMBERS):
        raise ConfigException(f"{place}: {min(unknown)} is not one of {', '.join(_MEMBERS)}.")
    roles = ", ".join(role.name.lower() for role in UserRole)
    role = table.get("role")
    if not isinstance(role, str) or role.upper() not in UserRole.__members__:
        raise ConfigException(f"{place}: role must be one of {roles}.")
    tokens = _texts(table, "tokens", place)
    if any(not _TOKEN_HASH.fullmatch(token) for token in tokens):
        raise ConfigException(f"{place}: a token is written sha256: and 64 hexadecimal digits.")
    password = table.get("password")
    if password is not None and _scrypt_parts(password) is None:
        raise ConfigException(f"{place}: a password is written scrypt:SALT:HASH, both Base64.")
    connectors = _texts(table, "connectors", place) if "connectors" in table else ("*",)
    return User(
        name=name,
        role=UserRole[role.upper()],
        connectors=connectors,
        password=password,
        tokens=frozenset(tokens),
        certificates=frozenset(
            re.sub(r"\s*(?<!\\),\s*", ",", text) for text in _texts(table, "certificates", place)
        ),
    )


def _texts(table: Mapping[str, Any], name: str, place: str) -> tuple[str, ...]:
    value = table.get(name, [])
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ConfigException(f"{place}: {name} must be a list of texts.")
    return tuple(value)


def token_hash(token: str) -> str:
    return f"sha256:{hashlib.sha256(token.encode()).hexdigest()}"


def is_password(given: str, written: str) -> bool:
    """Return whether a password matches `scrypt:SALT:HASH`; takes tens of milliseconds."""
    parts = _scrypt_parts(written)
    if parts is None:
        return False
    salt, expected = parts
    found = hashlib.scrypt(given.encode(), salt=salt, dklen=len(expected), **_SCRYPT)
    return hmac.compare_digest(found, expected)


def _scrypt_parts(written: object) -> tuple[bytes, bytes] | None:
    scheme, _, encoded = str(written).partition(":")
    try:
        salt, expected = (b64decode(part, validate=True) for part in encoded.split(":"))
    except (ValueError, Base64Error):
        return None
    return (salt, expected) if scheme == "scrypt" and len(expected) >= 16 else None


_SUBJECT_NAMES = {
    "commonName": "CN",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "domainComponent": "DC",
    "userId": "UID",
    "emailAddress": "EMAILADDRESS",
}
_ESCAPED = re.compile(r'([,+"\\<>;=])')


def subject_text(subject: Iterable[Iterable[tuple[str, str]]]) -> str:
    """Return the subject of a certificate, as `ssl` reports it, in the form `CN=anna,O=Example`."""
    parts = [
        "+".join(
            f"{_SUBJECT_NAMES.get(name, name)}={_ESCAPED.sub(_BACKSLASHED, value)}"
            for name, value in part
        )
        for part in subject
    ]
    return ",".join(reversed(parts))


_BACKSLASHED = r"\\\1"


EXTENSION = "BasicAuthSecurityRestExtension"
_PACKAGE = "org.apache.kafka.connect.rest.basic.auth.extension"
EXTENSION_NAMES = (f"{_PACKAGE}.{EXTENSION}", EXTENSION)

JAAS_FILE = "java.security.auth.login.config"
_ENTRY = "KafkaConnect"
_MODULE = f"{_PACKAGE}.PropertyFileLoginModule"
_OPTION = f"-D{JAAS_FILE}="
_VARIABLES = ("KAFKA_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")
_EXAMPLE = f'{_ENTRY} {{ {_MODULE} required file="/path/credentials.properties"; }};'


def jaas_file(configured: str | None, environment: Mapping[str, str]) -> str:
    """Return the path of the JAAS file; raises ConfigException without one."""
    words = [word for name in _VARIABLES for word in _words(environment.get(name, ""))]
    options = [word for word in words if word.startswith(_OPTION)]
    # In Java `==` means: this file and no other one.
    path = configured or next(iter(options), "").removeprefix(_OPTION).removeprefix("=")
    if not path:
        raise ConfigException(
            f"{EXTENSION} needs a JAAS file: set {JAAS_FILE} in the worker's properties, or"
            f" {_OPTION}FILE in the variable KAFKA_OPTS."
        )
    return unquote(urlsplit(path).path) if path.startswith("file:") else path


def credentials_file(text: str, *, source: str) -> str:
    """Return the credentials file that a JAAS file's text names; `source` is for errors."""
    try:
        entry = jaas_file_entry(text, _ENTRY)
    except ClientPropertyError as error:
        raise ConfigException(
            f"{source}: the entry {_ENTRY} cannot be read; write {_EXAMPLE}"
        ) from error
    if entry is None:
        raise ConfigException(f"{source}: there is no entry {_ENTRY}; write {_EXAMPLE}")
    if entry.login_module != _MODULE:
        raise ConfigException(
            f"{source}: {entry.login_module} is a Java class, which an agent does not run; use"
            f" {_MODULE}, or put a proxy that authenticates before REST."
        )
    file = entry.options.get("file", "")
    if not file.strip():
        raise ConfigException(f"{source}: the entry {_ENTRY} names no file; write {_EXAMPLE}")
    return file


def _words(options: str) -> list[str]:
    try:
        return shlex.split(options)
    except ValueError:
        return options.split()
