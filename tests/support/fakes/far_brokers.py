"""Brokers with a second way to them: its clients go through proxies that a test can silence."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyconnect_sandbox.broker import BrokerConfig, KafkaBroker, random_cluster_id
from pyconnect_sandbox.runtime import KafkaRuntime
from pyconnect_sandbox.server import LOOPBACK
from tests.support.servers.kafka_cluster import free_ports
from tests.support.servers.proxy import Proxy


@dataclass(frozen=True, kw_only=True)
class FarBrokers:
    """`proxies` by node id; clients of the far way are told to go on through them."""

    brokers: tuple[KafkaBroker, ...]
    proxies: dict[int, Proxy]

    @property
    def near(self) -> str:
        """Bootstrap servers without the proxies."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    @property
    def far(self) -> str:
        return ",".join(f"{LOOPBACK}:{proxy.port}" for proxy in self.proxies.values())


@contextmanager
def far_brokers(runtime: KafkaRuntime, directory: Path, size: int = 1) -> Iterator[FarBrokers]:
    """Start brokers that form one cluster, and their proxies."""
    chosen = free_ports(3 * size)
    nodes = range(1, size + 1)
    ports = dict(zip(nodes, zip(*[iter(chosen)] * 3, strict=True), strict=True))
    voters = {node: controller for node, (controller, _, _) in ports.items()}
    cluster_id = random_cluster_id()
    with ExitStack() as opened:
        proxies = {node: opened.enter_context(Proxy(far)) for node, (_, _, far) in ports.items()}
        brokers = []
        for node, (controller, near, far) in ports.items():
            bound = {"PLAINTEXT": near, "FAR": far}
            told = {"PLAINTEXT": near, "FAR": proxies[node].port}
            properties = {
                "listeners": _addresses({**bound, "CONTROLLER": controller}),
                "advertised.listeners": _addresses(told),
                "listener.security.protocol.map": (
                    "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,FAR:PLAINTEXT"
                ),
            }
            config = BrokerConfig(
                runtime=runtime,
                directory=directory / f"far-{node}",
                node_id=node,
                port=near,
                voters=voters,
                cluster_id=cluster_id,
                properties=properties,
                hold_file=directory / "far.hold",
            )
            brokers.append(KafkaBroker(config))
            opened.callback(brokers[-1].stop)
            brokers[-1].launch()
        for broker in brokers:
            broker.wait_until_ready(60)
        yield FarBrokers(brokers=tuple(brokers), proxies=proxies)


def _addresses(ports: dict[str, int]) -> str:
    return ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in ports.items())
