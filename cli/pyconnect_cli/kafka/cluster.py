"""The brokers of the settings in force, as settings of both Kafka clients."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyconnect_cli.errors import PreconditionFailed

if TYPE_CHECKING:
    from pyconnect_cli.session import Session
    from pyconnect_clients.security import Security


def _no_security() -> Security:
    from pyconnect_clients.security import Security

    return Security()


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaAccess:
    """Addresses of brokers (`host:port,…`) and credentials; key stores have been read."""

    bootstrap: str
    security: Security = field(default_factory=_no_security)

    @property
    def username(self) -> str | None:
        """The user name of this command, if it logs in with a password."""
        return None if self.security.sasl is None else self.security.sasl.username

    def librdkafka(self) -> dict[str, Any]:
        """Return librdkafka's settings: texts, and the callback of a login by token.

        UsageError when the authorization server refuses.
        """
        from pyconnect_cli.settings.given_files import property_errors_translated
        from pyconnect_clients.connections import with_token_callback
        from pyconnect_clients.security_settings import librdkafka_settings

        settings = {**librdkafka_settings(self.security), "bootstrap.servers": self.bootstrap}
        with property_errors_translated():
            return with_token_callback(settings)

    def kafka_python(self) -> dict[str, Any]:
        """Return arguments of kafka-python's clients; UsageError for unsupported settings."""
        from pyconnect_cli.settings.given_files import property_errors_translated
        from pyconnect_clients.connections import secured_arguments

        with property_errors_translated():
            arguments = secured_arguments(self.security, self.bootstrap)
        servers = [part.strip() for part in self.bootstrap.split(",") if part.strip()]
        return {**arguments, "bootstrap_servers": servers, "client_id": "pyconnect"}


def kafka_cluster(session: Session, reason: str) -> KafkaAccess:
    """Return the brokers of the settings; PreconditionFailed with `reason` without any."""
    bootstrap = session.settings.kafka_bootstrap
    if not bootstrap:
        raise PreconditionFailed(
            reason,
            hint="give --kafka-bootstrap HOST:PORT, PYCONNECT_KAFKA_BOOTSTRAP, or"
            " kafka.bootstrap in the context",
        )
    return KafkaAccess(bootstrap=bootstrap, security=session.kafka_security)
