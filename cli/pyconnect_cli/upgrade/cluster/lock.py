"""The lock that prevents two upgrades of one Connect cluster, also from different hosts.

The holder is the sole member of the consumer group `pyconnect-upgrade-GROUP` on the workers' Kafka.
This needs no topic and one grant, Read on the group; a killed holder's membership ends with its
session. Two runs that start at the same moment both refuse. A thread owns the client, because the
membership lasts only while the client is polled; `held` shows whether it has lasted throughout.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyconnect_cli.errors import Conflict, Forbidden, PyconnectError, Unreachable
from pyconnect_cli.kafka.admin import KafkaAccess, protocol_errors
from pyconnect_cli.upgrade.cluster.kafka_group import describe_group

if TYPE_CHECKING:
    from pyconnect_clients.brokers.protocol import KafkaProtocol

SESSION_MS = 10_000
"""A killed run keeps the next one waiting for this time. With the shortest that brokers allow, 6 s,
a run lost the lock while a broker or its own host was busy with the start of other processes."""
HEARTBEAT_MS = 1_500
JOIN_S = 20.0
POLL_MS = 200
POLL_INTERVAL_MS = 30_000
STOP_S = 5.0


class ClusterLock:
    """One membership; `held` is asked before each step."""

    def __init__(self, cluster: KafkaAccess, group: str) -> None:
        self._cluster = cluster
        self._group = group
        self._joined = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="upgrade-lock", daemon=True)
        self.member_id: str | None = None
        self._lost = False
        self._failure: PyconnectError | None = None

    def take(self) -> None:
        """Join the group; raises the error that prevented it."""
        self._thread.start()
        in_time = self._joined.wait(JOIN_S)
        if self._failure is not None:
            raise self._failure
        if not in_time:
            raise Unreachable(f"Kafka: the group {self._group} was not joined in {JOIN_S:.0f}s")

    def release(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(STOP_S)

    def held(self) -> bool:
        """Whether the membership has lasted since it was taken."""
        return not self._lost and self._thread.is_alive()

    def _run(self) -> None:
        from kafka import KafkaConsumer

        consumer: Any = None  # the library has no types
        try:
            with protocol_errors("lock the cluster"):
                consumer = KafkaConsumer(
                    **self._cluster.kafka_python(),
                    group_id=self._group,
                    session_timeout_ms=SESSION_MS,
                    heartbeat_interval_ms=HEARTBEAT_MS,
                    max_poll_interval_ms=POLL_INTERVAL_MS,
                    enable_auto_commit=False,
                    allow_auto_create_topics=False,
                )
                # subscribe() needs a topic; one that does not exist keeps the assignment empty.
                consumer.subscribe([self._group])
                # Polls with short timeouts would begin join after join on a slow machine, each of
                # which leaves a member behind that the next one waits for.
                coordinator = consumer._coordinator  # noqa: SLF001 - nothing public joins
                coordinator.ensure_active_group(timeout_ms=JOIN_S * 1000)
                self._look(consumer)
                while not self._stop.is_set():
                    consumer.poll(POLL_MS)
                    self._look(consumer)
        except PyconnectError as error:
            if isinstance(error, Forbidden):
                error.hint = f"this command needs Read on the group {self._group}"
            self._failure = error
        finally:
            self._lost = True
            self._joined.set()
            if consumer is not None:
                consumer.close()

    def _look(self, consumer: Any) -> None:
        coordinator = consumer._coordinator  # noqa: SLF001 - it has no public way to tell
        generation = coordinator._generation  # noqa: SLF001 - likewise
        if coordinator.state != "<stable>" or generation is None:
            return
        if self.member_id is None:
            self.member_id = str(generation.member_id)
            self._joined.set()
        elif self.member_id != generation.member_id:
            self._lost = True


@contextmanager
def cluster_lock(
    cluster: KafkaAccess, protocol: KafkaProtocol, group_id: str
) -> Iterator[ClusterLock]:
    """Hold the lock; Conflict (exit 6) while another run holds it.

    A killed run holds it until its session ends; the function waits that long.
    """
    name = f"pyconnect-upgrade-{group_id}"
    # Wait for the maximum time that a killed run's session lasts.
    until = time.monotonic() + (SESSION_MS + HEARTBEAT_MS) / 1000
    while describe_group(protocol, name).members:
        if time.monotonic() > until:
            raise _held_by_another(name)
        time.sleep(POLL_MS / 1000)
    lock = ClusterLock(cluster, name)
    try:
        lock.take()
        members = describe_group(protocol, name).members
        if [member.id for member in members] != [lock.member_id]:
            raise _held_by_another(name)
        yield lock
    finally:
        lock.release()


def _held_by_another(name: str) -> Conflict:
    return Conflict(
        f"another run is upgrading this cluster: it holds the lock, group {name}",
        hint="find that run; the lock ends with it",
    )
