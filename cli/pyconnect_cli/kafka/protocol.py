"""A connection for raw requests of Kafka's protocol, for requests that librdkafka lacks.

kafka-python is imported when a command needs it (`pyconnect_clients.brokers.protocol`). Its errors
become the command line's errors here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from pyconnect_cli.kafka.admin import CONTACT_S, translated
from pyconnect_cli.kafka.cluster import KafkaAccess, kafka_cluster

if TYPE_CHECKING:
    from pyconnect_cli.session import Session
    from pyconnect_clients.brokers.protocol import KafkaProtocol


@contextmanager
def kafka_protocol(session: Session, reason: str) -> Iterator[KafkaProtocol]:
    """Connect with the settings in force; PreconditionFailed with `reason` without brokers."""
    cluster = kafka_cluster(session, reason)
    with connected(cluster, session.budget.remaining_s) as protocol:
        yield protocol


@contextmanager
def connected(cluster: KafkaAccess, remaining_s: Callable[[], float]) -> Iterator[KafkaProtocol]:
    """Connect with one cluster; UsageError for credentials that this client cannot use."""
    from pyconnect_clients.brokers.protocol import KafkaProtocol, admin_client

    # Errors are reported once, by the call that fails.
    logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)
    arguments = cluster.kafka_python()
    with ExitStack() as stack:
        with translated_errors(f"connect with {cluster.bootstrap}"):
            contact_s = min(CONTACT_S, max(remaining_s(), 0.1))
            admin = stack.enter_context(admin_client(arguments, contact_s))
        yield KafkaProtocol(admin, remaining_s, translated_errors)


@contextmanager
def translated_errors(what: str) -> Iterator[None]:
    """Raise an error of kafka-python as ours."""
    from kafka.errors import KafkaError

    try:
        yield
    except (KafkaError, OSError, ValueError) as exc:
        raise translated(exc, what) from exc


def error_of(code: int) -> Exception:
    """Return the client's error of a broker's code."""
    from kafka.errors import for_code

    error: Exception = for_code(code)()
    return error
