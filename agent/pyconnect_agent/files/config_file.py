"""Read Java properties files of workers and connectors.

Corresponds to ``Utils.loadProps`` of Kafka. All inner code takes typed configurations.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import javaproperties

from pyconnect_api.errors import ConfigException


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertiesFile:
    """A properties file as it was read; `entries` may hold secrets. `path` is absolute."""

    path: Path
    sha256: str
    entries: Mapping[str, str] = field(repr=False)


def load_properties(path: str | Path) -> dict[str, str]:
    """Return the entries of a properties file, in the order of the file; the last of a key wins.

    Raises ConfigException with the file, the line if known, and the remedy.
    """
    return dict(read_properties_file(path).entries)


def read_properties_file(path: str | Path) -> PropertiesFile:
    """Do as `load_properties`, and return the version of the file too."""
    file = Path(path)
    data = _read(file)
    return PropertiesFile(
        path=file.absolute(),
        sha256=hashlib.sha256(data).hexdigest(),
        entries=parse_properties(_decode(data), source=str(file)),
    )


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError as error:
        raise ConfigException(f"{file}: there is no such file; check the path.") from error
    except IsADirectoryError as error:
        raise ConfigException(f"{file}: this is a directory; name the file in it.") from error
    except OSError as error:
        raise ConfigException(
            f"{file}: cannot be read ({error.strerror}); give this user read access."
        ) from error


def parse_properties(text: str, *, source: str) -> dict[str, str]:
    """Return the entries of a properties text; ``source`` names it in errors."""
    try:
        lines = [
            line for line in javaproperties.parse(text) if isinstance(line, javaproperties.KeyValue)
        ]
    except javaproperties.InvalidUEscapeError as error:
        line = _line_of(text, error.escape)
        raise ConfigException(
            f"{source}, line {line}: '{error.escape}' is not a character; write \\u and four "
            "hexadecimal digits, or \\\\ for a backslash."
        ) from error
    for entry in lines:
        if not entry.key:
            line = _line_of(text, entry.source)
            raise ConfigException(
                f"{source}, line {line}: the property has no name; write name=value."
            )
    return {entry.key: entry.value for entry in lines}


def _decode(data: bytes) -> str:
    """Decode as UTF-8, else as ISO-8859-1, which is what Java reads and never fails."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("iso-8859-1")


def _line_of(text: str, part: str) -> int:
    return text.count("\n", 0, max(text.find(part), 0)) + 1
