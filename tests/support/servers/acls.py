"""A worker and its credentials, for tests of ACLs."""

from pyconnect_clients.acls.needs import WorkerFacts


def jaas(user: str, password: str = "secret") -> str:
    return (
        "org.apache.kafka.common.security.plain.PlainLoginModule required"
        f' username="{user}" password="{password}";'
    )


def sasl(user: str, prefix: str = "", password: str = "secret") -> dict[str, str]:
    """Java's client properties of a SASL user, each with a prefix."""
    return {
        f"{prefix}security.protocol": "SASL_PLAINTEXT",
        f"{prefix}sasl.mechanism": "PLAIN",
        f"{prefix}sasl.jaas.config": jaas(user, password),
    }


WORKER = WorkerFacts(
    name="w",
    properties={
        "bootstrap.servers": "localhost:9092",
        "group.id": "g",
        "config.storage.topic": "configs",
        "offset.storage.topic": "offsets",
        "status.storage.topic": "statuses",
        **sasl("worker"),
        **sasl("writer", "producer."),
        **sasl("reader", "consumer."),
    },
)
