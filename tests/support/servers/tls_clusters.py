"""Brokers behind TLS, and the stores of their clients in every form that Java reads."""

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509 import load_pem_x509_certificate

from pyconnect_sandbox.broker import BrokerSecurity, KafkaBroker
from pyconnect_sandbox.server import LOOPBACK
from tests.support.servers.kafka import Servers

USER = "auditor"
SASL_PASSWORD = 'scram "secret" \\ of the auditor'
STORE_PASSWORD = "secret-of-the-store"
KEYTOOL_S = 60.0


class Stores:
    """Keys and certificates below a directory, signed by one authority."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        self._authority = trustme.CA()
        self.authority = directory / "authority.pem"
        self._authority.cert_pem.write_to_path(str(self.authority))

    def identity(self, name: str, expires: datetime | None = None) -> Path:
        """Write key and certificates to one PEM file, the key as PKCS#8 as Java needs it."""
        issued = self._authority.issue_cert(LOOPBACK, common_name=name, not_after=expires)
        key = load_pem_private_key(issued.private_key_pem.bytes(), None)
        chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
        path = self.directory / f"{name}.pem"
        path.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + chain
        )
        return path

    def trust_store(self, kind: str) -> Path:
        """Write the authority to a Java store: JKS or PKCS12."""
        path = self.directory / f"trust.{kind.lower()}"
        if not path.exists():
            keytool(
                *("-importcert", "-noprompt", "-alias", "authority", "-file", self.authority),
                *("-keystore", path, "-storetype", kind, "-storepass", STORE_PASSWORD),
            )
        return path

    def key_store(self, kind: str) -> Path:
        """Write a client's key to a Java store, by way of PKCS#12."""
        path = self.directory / f"client.{kind.lower()}"
        if path.exists():
            return path
        issued = self._authority.issue_cert(LOOPBACK, common_name=f"client-{kind}")
        exchanged = path.with_suffix(".exchange")
        certificates = [load_pem_x509_certificate(b.bytes()) for b in issued.cert_chain_pems]
        exchanged.write_bytes(
            serialize_key_and_certificates(
                b"client",
                load_pem_private_key(issued.private_key_pem.bytes(), None),
                certificates[0],
                certificates[1:],
                BestAvailableEncryption(STORE_PASSWORD.encode()),
            )
        )
        keytool(
            *("-importkeystore", "-noprompt", "-srckeystore", exchanged),
            *("-srcstorepass", STORE_PASSWORD, "-srcstoretype", "PKCS12"),
            *("-destkeystore", path, "-deststoretype", kind, "-deststorepass", STORE_PASSWORD),
        )
        return path


def keytool(*arguments: str | Path) -> None:
    tool = shutil.which("keytool")
    assert tool is not None
    subprocess.run([tool, *arguments], check=True, capture_output=True, timeout=KEYTOOL_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsClusters:
    """Two clusters of one broker each; `scram` asks for a password, `mutual` for a certificate."""

    stores: Stores
    scram: KafkaBroker
    mutual: KafkaBroker

    def scram_properties(self, *, password: str = SASL_PASSWORD) -> dict[str, str]:
        """Return the properties that a client needs besides a trust store."""
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        quoted = password.replace("\\", "\\\\").replace('"', '\\"')
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{module} required username="{USER}" password="{quoted}";',
        }


def trusting_pem(stores: Stores) -> dict[str, str]:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(stores.authority)}


def trusting_store(stores: Stores, kind: str) -> dict[str, str]:
    """Return a trust store without a type: Java reads JKS and PKCS#12 as either."""
    return {
        "ssl.truststore.location": str(stores.trust_store(kind)),
        "ssl.truststore.password": STORE_PASSWORD,
    }


def known_by_pem(stores: Stores) -> dict[str, str]:
    return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(stores.identity("client"))}


def known_by_text(stores: Stores) -> dict[str, str]:
    """Return properties that contain key and chain themselves (KIP-651)."""
    identity = stores.identity("client-text").read_text()
    key, mark, chain = identity.partition("-----END PRIVATE KEY-----\n")
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": key + mark,
        "ssl.keystore.certificate.chain": chain,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": stores.authority.read_text(),
    }


def known_by_store(stores: Stores, kind: str) -> dict[str, str]:
    return {
        "ssl.keystore.location": str(stores.key_store(kind)),
        "ssl.keystore.password": STORE_PASSWORD,
    }


def tls_clusters(servers: Servers, directory: Path) -> TlsClusters:
    """Start both clusters; the listener of SASL users is the one with TLS."""
    stores = Stores(directory / "stores")
    identity = stores.identity("broker")
    return TlsClusters(
        stores=stores,
        scram=_broker(servers, stores, identity, "SASL_SSL", {}),
        mutual=_broker(
            servers, stores, identity, "SSL", {"listener.name.sasl.ssl.client.auth": "required"}
        ),
    )


def properties_file(path: Path, properties: Mapping[str, str]) -> Path:
    """Write client properties in Java's form."""
    path.touch(mode=0o600)
    path.write_text("".join(f"{key}={_escaped(value)}\n" for key, value in properties.items()))
    return path


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def _broker(
    servers: Servers, stores: Stores, identity: Path, protocol: str, more: Mapping[str, str]
) -> KafkaBroker:
    listener = "listener.name.sasl.ssl"
    return servers.broker(
        security=BrokerSecurity(sasl_users={USER: SASL_PASSWORD}),
        properties={
            "listener.security.protocol.map": (
                f"CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:{protocol}"
            ),
            f"{listener}.keystore.type": "PEM",
            f"{listener}.keystore.location": str(identity),
            f"{listener}.truststore.type": "PEM",
            f"{listener}.truststore.location": str(stores.authority),
            **more,
        },
    )
