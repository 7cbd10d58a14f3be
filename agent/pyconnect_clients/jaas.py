"""Parses the login entry of ``sasl.jaas.config``, and entries of a JAAS file.

Corresponds to ``JaasConfig`` of Kafka: one entry of a JAAS file, as in
``org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyconnect_clients.errors import ClientPropertyError

JAAS_CONFIG = "sasl.jaas.config"

_TOKEN = re.compile(
    r"""\s*(?: "((?:[^"\\]|\\.)*)" | '((?:[^'\\]|\\.)*)' | ([=;]) | ([^\s=;"']+) )""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"""("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/""", re.DOTALL)
_FILE_ENTRY = r"""(?:^|[\s;])"?{}"?\s*\{{((?:"(?:[^"\\]|\\.)*"|[^"}}])*)\}}\s*;"""
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_FLAGS = ("required", "requisite", "sufficient", "optional")


@dataclass(frozen=True, slots=True, kw_only=True)
class JaasEntry:
    """A login module and its options, which hold secrets and are left out of its text form."""

    login_module: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def simple_name(self) -> str:
        """The module's class name without its package."""
        return self.login_module.rpartition(".")[2]


def parse_jaas(text: str) -> JaasEntry:
    """Return the only entry; raise ClientPropertyError, whose text does not quote the value."""
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(text.rstrip()):
        found = _TOKEN.match(text, at)
        if not found:
            raise _error("a quote is not closed")
        double, single, symbol, word = found.groups()
        if symbol is not None:
            tokens.append(("symbol", symbol))
        elif word is not None:
            tokens.append(("word", word))
        else:
            quoted = double if double is not None else single
            tokens.append(("word", _ESCAPE.sub(r"\1", quoted or "")))
        at = found.end()
    if len(tokens) < 3 or tokens[-1] != ("symbol", ";"):
        raise _error("it must end with a semicolon")
    (_, login_module), (_, flag) = tokens[0], tokens[1]
    if flag.lower() not in _FLAGS:
        raise _error(f"the second word must be one of {', '.join(_FLAGS)}")
    options: dict[str, str] = {}
    body = tokens[2:-1]
    for position in range(0, len(body), 3):
        option = body[position : position + 3]
        if len(option) != 3 or option[1] != ("symbol", "=") or option[2][0] == "symbol":
            raise _error("options are written name=value, and there is only one login module")
        options[option[0][1]] = option[2][1]
    return JaasEntry(login_module=login_module, options=options)


def jaas_file_entry(text: str, name: str) -> JaasEntry | None:
    """Return the login module of an entry of a JAAS file, None if the file lacks the entry.

    Raises ClientPropertyError as `parse_jaas` does, and for an entry with several login modules.
    """
    plain = _COMMENT.sub(lambda found: found[1] or " ", text)
    found = re.search(_FILE_ENTRY.format(re.escape(name)), plain, re.DOTALL)
    return None if found is None else parse_jaas(found[1])


def _error(reason: str) -> ClientPropertyError:
    return ClientPropertyError(
        JAAS_CONFIG,
        f"the value [hidden] cannot be read: {reason}",
        "write org.apache.kafka.common.security.plain.PlainLoginModule required"
        ' username="..." password="...";',
    )
