"""Java's trust and key stores for clients that read PEM and PKCS#12, converted by Java's keytool.

What is converted lies in a directory of the caller's, which only its owner may read and which goes
as soon as a client has loaded it. Passwords reach keytool through its environment.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyconnect_reconcile.errors import ReconcileError

KEYTOOL_S = 60.0
# keytool takes no shorter password for a store that it makes; the store is gone in a second.
PASSWORD_CHARACTERS = 6
_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_PEM_MARK = b"-----BEGIN "
_PKCS12_MARK = b"\x30"


def is_pem(path: str) -> bool:
    """Tell whether a file is PEM; false when it is not there, so that its reader says so."""
    try:
        return _PEM_MARK in Path(path).read_bytes()
    except OSError:
        return False


def with_pem_stores(properties: Mapping[str, str], work: Path) -> dict[str, str]:
    """Return Java's properties with the trust store as PEM and the key store as PEM or PKCS#12.

    New files go into `work`. Raises ReconcileError for a store that cannot be read.
    """
    converted = dict(properties)
    if (trusted := converted.pop("ssl.truststore.certificates", None)) is not None:
        converted |= {"ssl.truststore.location": str(_written(work / "trusted.pem", trusted))}
    elif (location := properties.get("ssl.truststore.location")) and not is_pem(location):
        trusted = _trusted_certificates(location, properties.get("ssl.truststore.password"))
        converted |= {"ssl.truststore.location": str(_written(work / "trusted.pem", trusted))}
    chain = converted.pop("ssl.keystore.certificate.chain", None)
    key = converted.pop("ssl.keystore.key", None)
    if chain is not None and key is not None:
        both = _written(work / "key.pem", f"{chain}\n{key}\n")
        converted |= {"ssl.keystore.location": str(both)}
    elif (location := properties.get("ssl.keystore.location")) and not _is_understood(location):
        store = _as_pkcs12(location, properties.get("ssl.keystore.password"), work)
        converted |= {"ssl.keystore.location": str(store)}
    return converted


def _is_understood(path: str) -> bool:
    try:
        return is_pem(path) or Path(path).read_bytes().startswith(_PKCS12_MARK)
    except OSError as exc:
        raise _unreadable(path, exc.strerror or str(exc)) from exc


def _trusted_certificates(path: str, password: str | None) -> str:
    """Return the certificates of a store of any type that Java knows, as PEM."""
    given = [] if password is None else ["-storepass:env", "STORE"]
    listed = _keytool(path, ["-list", "-rfc", "-keystore", path, *given], {"STORE": password or ""})
    certificates = _CERTIFICATE.findall(listed)
    if not certificates:
        raise _unreadable(path, "there is no certificate in it")
    return "\n".join(certificates) + "\n"


def _as_pkcs12(path: str, password: str | None, work: Path) -> Path:
    """Convert a key store; keys keep the store's password, as PKCS#12 knows only one."""
    if password is None:
        raise _unreadable(path, "ssl.keystore.password is missing")
    if len(password) < PASSWORD_CHARACTERS:
        raise _unreadable(path, f"its password has fewer than {PASSWORD_CHARACTERS} characters")
    target = work / "key.p12"
    _keytool(
        path,
        [
            *("-importkeystore", "-noprompt", "-srckeystore", path, "-srcstorepass:env", "STORE"),
            *("-destkeystore", str(target), "-deststoretype", "PKCS12"),
            *("-deststorepass:env", "STORE"),
        ],
        {"STORE": password},
    )
    return target


def _keytool(path: str, arguments: Sequence[str], secrets: Mapping[str, str]) -> str:
    home = os.environ.get("JAVA_HOME")
    tool = shutil.which("keytool", path=f"{home}/bin") if home else shutil.which("keytool")
    if tool is None:
        raise ReconcileError(
            f"{path} is a key store of Java's, and its keytool was not found",
            hint="install Java, or give the certificates as PEM",
        )
    try:
        done = subprocess.run(
            [tool, "-J-Duser.language=en", *arguments],
            env={**os.environ, **secrets},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=KEYTOOL_S,
        )
    except subprocess.TimeoutExpired as exc:
        raise _unreadable(path, "keytool did not end") from exc
    if done.returncode != 0:
        said = [line for line in done.stdout.splitlines() if "rror" in line or "xception" in line]
        raise _unreadable(path, said[0].strip() if said else "keytool failed")
    return done.stdout


def _written(path: Path, text: str) -> Path:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    return path


def _unreadable(path: str, why: str) -> ReconcileError:
    return ReconcileError(
        f"Kafka client properties: the store {path} cannot be read: {why}",
        hint="are its path and password right?",
    )
