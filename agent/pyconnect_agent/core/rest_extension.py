"""Apache's REST extension of users and passwords: its names, and its file of credentials.

Layer: core. Corresponds to ``BasicAuthSecurityRestExtension`` and ``PropertyFileLoginModule``.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from pyconnect_api.errors import ConfigException
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.jaas import jaas_file_entry

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
    # Java reads `==` as: this file and no other one.
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
