"""Several brokers that form one cluster, and different free ports."""

from contextlib import ExitStack
from dataclasses import replace
from typing import Self

from pyconnect_sandbox.broker import BrokerConfig, KafkaBroker, random_cluster_id
from pyconnect_sandbox.server import free_port

STOP_GRACE_S = 2.0


def free_ports(count: int, exclude: frozenset[int] = frozenset()) -> tuple[int, ...]:
    """Return `count` different free ports, none of them in `exclude`."""
    chosen: tuple[int, ...] = ()
    while len(chosen) < count:
        chosen = (*chosen, free_port(exclude | frozenset(chosen)))
    return chosen


class KafkaCluster:
    """Several brokers, each a controller too, that form one cluster.

    Internal topics have three replicas, so that any single broker may be killed.
    """

    def __init__(self, config: BrokerConfig, size: int = 3) -> None:
        """Take `config` for every broker, each in a directory below `config.directory`."""
        controllers = free_ports(size)
        listeners = free_ports(size, frozenset(controllers))
        voters = dict(enumerate(controllers, start=1))
        cluster_id = config.cluster_id or random_cluster_id()
        self._start_timeout_s = config.start_timeout_s
        self.brokers = tuple(
            KafkaBroker(
                replace(
                    config,
                    directory=config.directory / f"node-{node_id}",
                    node_id=node_id,
                    port=listeners[node_id - 1],
                    voters=voters,
                    cluster_id=cluster_id,
                )
            )
            for node_id in voters
        )

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of all brokers."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    def start(self) -> Self:
        """Start all brokers and wait until each answers and all know each other."""
        with ExitStack() as started:
            # Launched together: a broker alone has no quorum and would never answer.
            for broker in self.brokers:
                started.callback(broker.stop)
                broker.launch()
            for broker in self.brokers:
                broker.wait_until_ready(self._start_timeout_s)
            started.pop_all()
        return self

    def stop(self) -> None:
        """Stop all brokers at once, shortly: the last ones wait for a quorum that is gone."""
        for broker in self.brokers:
            if broker.is_running:
                broker.terminate()
        for broker in self.brokers:
            broker.stop(STOP_GRACE_S)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
