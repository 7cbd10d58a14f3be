"""Keys of TLS and SASL, as Kafka's clients define them (4.3.1).

Layer: core. Corresponds to ``SslConfigs`` and ``SaslConfigs``. Taken from the table of client keys,
so the two never differ; documentation is given where a user of this worker needs it.
"""

from __future__ import annotations

from dataclasses import replace

from pyconnect_agent.core.config.client_keys import CLIENT_CONFIG_DEFS, ClientKind
from pyconnect_api.configdef import ConfigDef

_DOCUMENTATION = {
    "ssl.keystore.type": "Format of the key store: PEM, PKCS12 or JKS.",
    "ssl.keystore.location": "File with the private key and its certificate chain.",
    "ssl.keystore.password": "Password of the key store file.",
    "ssl.keystore.key": "Private key as PEM text, instead of a file.",
    "ssl.keystore.certificate.chain": "Certificate chain as PEM text, instead of a file.",
    "ssl.key.password": "Password of the private key.",
    "ssl.truststore.type": "Format of the trust store: PEM, PKCS12 or JKS.",
    "ssl.truststore.location": "File with the trusted certificates.",
    "ssl.truststore.certificates": "Trusted certificates as PEM text, instead of a file.",
    "ssl.endpoint.identification.algorithm": (
        "https checks that a server's certificate names the host; empty turns the check off."
    ),
    "sasl.mechanism": (
        "Authentication: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or AWS_MSK_IAM."
    ),
    "sasl.jaas.config": "Login module and credentials, in the form of a JAAS file's entry.",
}


def _with_prefix(prefix: str) -> ConfigDef:
    definition = ConfigDef()
    for key in CLIENT_CONFIG_DEFS[ClientKind.ADMIN].keys.values():
        if key.name.startswith(prefix):
            text = _DOCUMENTATION.get(key.name, "As for Kafka's Java clients.")
            definition.define_key(replace(key, documentation=text))
    return definition


SSL_CONFIG_DEF = _with_prefix("ssl.")
SASL_CONFIG_DEF = _with_prefix("sasl.")
