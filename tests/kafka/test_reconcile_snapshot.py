"""The snapshot of a reconciliation, taken by a principal with few rights."""

from pathlib import Path

import pytest

from pyconnect_cli.acls.plan.grants import Grant
from pyconnect_clients.acls.model import GrantOperation, Pattern, Resource, ResourceType
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import Cluster
from pyconnect_reconcile.topics.cluster_view import ClusterView
from pyconnect_reconcile.topics.snapshot import UNKNOWN_POLICY
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.secured import SecuredBroker, sasl

pytestmark = pytest.mark.kafka

WAIT_S = 150


def test_the_cleanup_policy_is_unknown_without_describe_configs(
    secured: SecuredBroker, tmp_path: Path
) -> None:
    """Offsets are there all the same; with the right the topic is seen to be compacted."""
    topic, user = unique_name("audited"), secured.user()
    secured.create_topics(topic)
    properties = tmp_path / "client.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in sasl(user).items()))
    cluster = Cluster(bootstrap=secured.sasl, properties=str(properties))

    def may(operation: GrantOperation) -> None:
        resource = Resource(ResourceType.TOPIC, topic)
        secured.grant([Grant("", f"User:{user}", resource, Pattern.LITERAL, operation)])

    def policy() -> str | None:
        try:
            [found] = ClusterView(cluster).snapshot([topic]).topics
        except ReconcileError:
            # The broker does not know of the grants yet.
            return None
        return found.cleanup_policy

    may(GrantOperation.DESCRIBE)
    may(GrantOperation.READ)
    eventually(lambda: policy() == UNKNOWN_POLICY, WAIT_S)
    may(GrantOperation.DESCRIBE_CONFIGS)
    eventually(lambda: policy() == "compact", WAIT_S)
