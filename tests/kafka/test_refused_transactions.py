"""A transactional producer that a broker refuses says which right is missing."""

import pytest

from pyconnect_agent.core.errors import AuthorizationError
from pyconnect_agent.kafka.task_producer import CLIENT_ERRORS
from pyconnect_agent.kafka.transactional_producer import TransactionalProducer
from pyconnect_agent.tasks.trace import is_permanent
from pyconnect_cli.acls.plan.grants import Grant
from pyconnect_clients.acls.model import GrantOperation, Pattern, Resource, ResourceType
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.secured import SecuredBroker

pytestmark = pytest.mark.kafka


class Refused:
    """A user's producer and one grant on its transactional id."""

    def __init__(self, secured: SecuredBroker) -> None:
        self.secured = secured
        self.topic, transactional_id = unique_name("refused"), unique_name("id")
        user = secured.user()
        secured.create_topics(self.topic, cleanup_policy="delete")
        resource = Resource(ResourceType.TRANSACTIONAL_ID, transactional_id)
        self.grant = Grant(
            secured.sasl, f"User:{user}", resource, Pattern.LITERAL, GrantOperation.WRITE
        )
        self._config = {**secured.client(user), "transactional.id": transactional_id}
        self.producer = self._new()

    def start(self) -> None:
        """Initialise a producer once the broker knows the grant; a denial ends a producer."""
        self.secured.grant([self.grant])
        eventually(self._starts)

    def _starts(self) -> bool:
        self.producer = self._new()
        try:
            return self.producer.init(lambda: False)
        except AuthorizationError:
            return False

    def _new(self) -> TransactionalProducer:
        return TransactionalProducer(self._config, max_block_ms=30_000)


def test_a_transactional_id_that_is_denied_is_named(secured: SecuredBroker) -> None:
    """At the start of the task."""
    refused = Refused(secured)
    with pytest.raises(AuthorizationError, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED") as raised:
        refused.producer.init(lambda: False)
    assert is_permanent(raised.value)


def test_a_topic_that_is_denied_is_named_when_the_transaction_is_committed(
    secured: SecuredBroker,
) -> None:
    """The client drops the records before it sends them and counts them only."""
    refused = Refused(secured)

    def record_is_queued() -> bool:
        refused.start()
        refused.producer.begin()
        try:
            refused.producer.produce(refused.topic, b"x")
        except CLIENT_ERRORS:
            return False  # The answer about the topic was quicker than the call.
        return True

    eventually(record_is_queued)
    with pytest.raises(AuthorizationError, match=refused.topic) as raised:
        refused.producer.commit([refused.topic])
    assert "TOPIC_AUTHORIZATION_FAILED" in str(raised.value)
    assert "see individual delivery reports" in str(raised.value.__cause__)
    assert is_permanent(raised.value)
    refused.producer.close(0)


def test_a_right_that_is_taken_back_is_named_where_a_record_is_refused(
    secured: SecuredBroker,
) -> None:
    """The client says `fatal error` there, without its cause."""
    refused = Refused(secured)
    topic = Resource(ResourceType.TOPIC, refused.topic)
    secured.grant([refused.grant._replace(resource=topic)])
    refused.start()
    secured.revoke(refused.grant)
    refused.producer.begin()
    found: list[BaseException] = []

    def record_is_refused() -> bool:
        try:
            refused.producer.produce(refused.topic, b"x")
        except CLIENT_ERRORS as exc:
            found.append(exc)
        return bool(found)

    eventually(record_is_refused)
    assert "Fatal error" in str(found[0])
    explained = refused.producer.explain(found[0], refused.topic, 1)
    assert isinstance(explained, AuthorizationError)
    assert "AUTHORIZATION_FAILED" in str(explained)
    refused.producer.close(0)
