"""A broker with ACLs and users, and the credentials of workers that log in."""

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from pyconnect_cli.acls.plan.check import assess
from pyconnect_cli.acls.plan.grants import Grant, missing_grants
from pyconnect_clients.acls.model import Evidence, GrantOperation, Pattern, Resource
from pyconnect_clients.acls.model import ResourceType as GrantedType
from pyconnect_clients.acls.needs import ClusterFacts, WorkerFacts, cluster_needs
from pyconnect_clients.connect_names import Phase
from pyconnect_sandbox.broker import BrokerConfig, BrokerSecurity, sasl_properties
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.commands.pyconnect_command import Pyconnect


def jaas(user: str, password: str = "secret") -> str:
    return (
        "org.apache.kafka.common.security.plain.PlainLoginModule required"
        f' username="{user}" password="{password}";'
    )


def sasl(user: str, prefix: str = "", password: str = "secret") -> dict[str, str]:
    """Return Java's client properties of a SASL user, with a prefix."""
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


PASSWORD = "secret"
TOOL = "tool"
USERS = tuple(f"user-{number}" for number in range(600))
_PLAIN_USERS = "listener.name.sasl.plain.sasl.jaas.config"
_TYPES = {
    GrantedType.TOPIC: ResourceType.TOPIC,
    GrantedType.GROUP: ResourceType.GROUP,
    GrantedType.TRANSACTIONAL_ID: ResourceType.TRANSACTIONAL_ID,
    GrantedType.CLUSTER: ResourceType.BROKER,
}
_OPERATIONS = {
    GrantOperation.READ: AclOperation.READ,
    GrantOperation.WRITE: AclOperation.WRITE,
    GrantOperation.CREATE: AclOperation.CREATE,
    GrantOperation.DELETE: AclOperation.DELETE,
    GrantOperation.ALTER: AclOperation.ALTER,
    GrantOperation.DESCRIBE: AclOperation.DESCRIBE,
    GrantOperation.DESCRIBE_CONFIGS: AclOperation.DESCRIBE_CONFIGS,
}
_PATTERNS = {
    Pattern.LITERAL: ResourcePatternType.LITERAL,
    Pattern.PREFIXED: ResourcePatternType.PREFIXED,
}


class SecuredBroker:
    """PLAINTEXT clients are super users; SASL users need grants."""

    def __init__(self, plaintext: str, sasl: str) -> None:
        """Take the addresses of both listeners."""
        self.plaintext = plaintext
        self.sasl = sasl
        self._users = users_of_this_process()
        self._admin = AdminClient({"bootstrap.servers": self.plaintext})

    def user(self) -> str:
        """Return a new user without any grant."""
        return next(self._users)

    def client_users(self) -> dict[str, str]:
        """Return a user for each client of a connector."""
        return {client: self.user() for client in ("producer", "consumer", "admin")}

    def grant(self, grants: Iterable[Grant]) -> None:
        """Create the ACLs, as the generated commands do."""
        bindings = [_binding(grant) for grant in grants]
        if bindings:
            for future in self._admin.create_acls(bindings).values():
                future.result(30)

    def revoke(self, grant: Grant) -> None:
        """Remove a grant, which must exist."""
        found = _binding(grant)
        pattern = AclBindingFilter(
            found.restype,
            found.name,
            found.resource_pattern_type,
            found.principal,
            found.host,
            found.operation,
            found.permission_type,
        )
        (future,) = self._admin.delete_acls([pattern]).values()
        assert future.result(30)

    def create_topics(self, *names: str, cleanup_policy: str = "compact") -> None:
        """Create topics with one partition; compacted ones, like offsets topics, need keys."""
        config = {"cleanup.policy": cleanup_policy}
        topics = [NewTopic(name, 1, 1, config=config) for name in names]
        for future in self._admin.create_topics(topics).values():
            future.result(30)

    def fill(self, *topics: str) -> None:
        """Write a record without an owner into each topic.

        Reading an empty topic would need no right to read.
        """
        producer = Producer({"bootstrap.servers": self.plaintext})
        for topic in topics:
            producer.produce(topic, b"{}", b'["nobody",{}]')
        assert producer.flush(30) == 0

    def client(self, user: str) -> dict[str, str]:
        """Return librdkafka's settings of a user."""
        return {
            "bootstrap.servers": self.sasl,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": PASSWORD,
        }

    def worker(self, user: str) -> dict[str, str]:
        """Return worker properties that make all its clients one user."""
        return {
            "bootstrap.servers": self.sasl,
            **sasl(user),
            **sasl(user, "producer."),
            **sasl(user, "consumer."),
        }


def overrides(users: Mapping[str, str]) -> dict[str, str]:
    """Return settings that make a connector's producer, consumer and admin client these users."""
    return {
        key: value
        for client, user in users.items()
        for key, value in sasl(user, f"{client}.override.").items()
    }


def worker_file(directory: Path, properties: Mapping[str, str]) -> Path:
    """Write a `worker.properties`."""
    file = directory / "worker.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return file


def internal(group: str) -> dict[str, str]:
    """Return group and internal topics of a worker."""
    return {
        "group.id": group,
        "config.storage.topic": f"{group}-configs",
        "offset.storage.topic": f"{group}-offsets",
        "status.storage.topic": f"{group}-status",
    }


def read_grants(text: str) -> list[Grant]:
    """Return the grants in the output of `acls generate -o json`."""
    return [
        Grant(
            entry["bootstrap_servers"] or "",
            entry["principal"],
            Resource(GrantedType(entry["resource_type"]), entry["resource"]),
            Pattern(entry["pattern"]),
            GrantOperation(entry["operation"]),
        )
        for entry in json.loads(text)["grants"]
    ]


def needed_grants(
    facts: ClusterFacts,
    phase: Phase = Phase.ENABLED,
    *,
    rules: Collection[str] | None = None,
    owner: str | None = None,
) -> set[Grant]:
    """Return the needed grants, of all rules or these, for all connectors or one."""
    needs = [n for n in cluster_needs(facts, phase).needs if owner in (None, n.owner)]
    found = assess(needs, Evidence(bindings={"": ()}))
    return set(missing_grants(f for f in found if rules is None or f.need.rule.id in rules).grants)


def blockers(pyconnect: Pyconnect, connector: str) -> set[tuple[str, str]]:
    """Return rules and resources of the blockers that `acls check` finds for one connector."""
    check = ("acls", "check", "--phase", "enabled", "--connector", connector, "-o", "json")
    ended = pyconnect(*check)
    missing = {
        (grant["rule"], grant["resource"])
        for grant in json.loads(ended.out)["grants"]
        if grant["severity"] == "blocker" and grant["verdict"] not in {"proven", "predicted"}
    }
    assert ended.code == (1 if missing else 0), ended.err
    return missing


def secured_config(
    runtime: KafkaRuntime, directory: Path, *, auto_create: bool = False
) -> BrokerConfig:
    """Return the settings of a broker with ACLs and `USERS`.

    `auto_create`: whether producers with the right create topics. Without it a missing topic shows
    that no client has created it.
    """
    # Only PLAIN has all users: formatting with SCRAM credentials takes a second for thirty users.
    users = sasl_properties(dict.fromkeys((TOOL, *USERS), PASSWORD))
    return BrokerConfig(
        runtime=runtime,
        directory=directory,
        security=BrokerSecurity(acl=True, sasl_users={TOOL: PASSWORD}),
        properties={
            "auto.create.topics.enable": str(auto_create).lower(),
            _PLAIN_USERS: users[_PLAIN_USERS],
        },
        hold_file=directory / "hold",
    )


def users_of_this_process() -> Iterator[str]:
    """Return the users of this pytest-xdist process."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return islice(USERS, int(worker.removeprefix("gw")), None, count)


def _binding(grant: Grant) -> AclBinding:
    return AclBinding(
        _TYPES[grant.resource.type],
        grant.resource.name,
        _PATTERNS[grant.pattern],
        grant.principal,
        "*",
        _OPERATIONS[grant.operation],
        AclPermissionType.ALLOW,
    )
