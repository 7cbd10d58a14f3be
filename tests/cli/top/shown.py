"""A cluster for the live view without processes: looks and verbs come from the test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Event

from pyconnect_cli.errors import Unreachable
from pyconnect_cli.overview.rows import ClusterLook
from pyconnect_cli.overview.status import ClusterRow
from pyconnect_cli.top.commands import Ended
from pyconnect_cli.top.state import KnownContext, Words
from tests.cli.overview.worlds import agent, child, look, positions, view, worker


@dataclass
class ShownCluster:
    """Implements `top.commands.Source`. `unreachable`: the reason why looks fail."""

    now: ClusterLook
    title: str = "prod"
    unreachable: str = ""
    answers: dict[Words, Ended] = field(default_factory=dict)
    ran: list[tuple[Words, bool]] = field(default_factory=list)
    looks: int = 0
    contexts: tuple[KnownContext, ...] = ()
    fleet: tuple[ClusterRow, ...] = ()
    others: dict[str, ShownCluster] = field(default_factory=dict)
    closed: bool = False
    reachable: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self.reachable.set()

    def look(self, *, lag: bool) -> ClusterLook:
        _ = lag
        self.looks += 1
        if self.unreachable:
            raise Unreachable(self.unreachable)
        return self.now

    def clusters(self) -> Sequence[ClusterRow]:
        return self.fleet

    def run(self, words: Words, *, width: int, agreed: bool = False) -> Ended:
        _ = width
        self.ran.append((words, agreed))
        return self.answers.get(words, Ended(0, (" ".join(words),)))

    def run_on_terminal(self, words: Words) -> int:
        self.ran.append((words, False))
        return 0

    def other(self, context: str) -> ShownCluster:
        """Return the test's other cluster once `reachable` is set."""
        self.reachable.wait(10)
        if context not in self.others:
            raise Unreachable(f"{context}: its password command failed")
        return self.others[context]

    def close(self) -> None:
        self.closed = True


def busy_cluster() -> ClusterLook:
    """Return a look at two agents and a Java worker, with values in most columns."""
    return look(
        view("orders", "RUNNING", "RUNNING", "RUNNING", worker="connect-1:8083"),
        view("orders-lake", "RUNNING", "FAILED", kind="sink", worker="connect-2:8083"),
        view("invoices", "RUNNING", kind="sink", worker="connect-3:8083"),
        view("clicks", state="PAUSED", worker="connect-1:8083"),
        view("inventory", state="STOPPED", worker="connect-2:8083"),
        workers=[
            agent(
                "http://connect-1:8083",
                phase="enabled",
                leader=True,
                rates={"orders/0": 1210.0, "orders/1": 980.5, "orders/2": 1103.0},
                children=[
                    child("orders", None, pid=100, rss=24 << 20),
                    *(child("orders", n, pid=101 + n, rss=(38 + n) << 20) for n in range(3)),
                    child("clicks", None, pid=110, rss=23 << 20),
                ],
            ),
            agent(
                "http://connect-2:8083",
                phase="enabled",
                rates={"orders-lake/0": 764.0},
                children=[child("orders-lake", 0, pid=200, rss=142 << 20)],
            ),
            worker("http://connect-3:8083"),
        ],
        positions=positions(0, **{"orders-lake": [(10, 48_310), (5, 5)], "invoices": [(7, 7)]}),
    )
