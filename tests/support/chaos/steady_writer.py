"""A transactional producer that never rests, as a source's task under load."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer

from tests.support.names import unique_name


@contextmanager
def steady_writer(bootstrap_servers: str, topic: str, key: bytes, value: bytes) -> Iterator[None]:
    """Commit one record after the other while the block runs; the first is there before it."""
    producer = Producer(
        {"bootstrap.servers": bootstrap_servers, "transactional.id": unique_name("steady")}
    )
    producer.init_transactions(30)
    enough = threading.Event()

    def commit_one() -> None:
        producer.begin_transaction()
        producer.produce(topic, value, key)
        producer.commit_transaction(30)

    def commit_on() -> None:
        while not enough.is_set():
            commit_one()

    commit_one()
    thread = threading.Thread(target=commit_on)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()
