"""Looks at clusters that do not exist."""

from collections.abc import Mapping, Sequence

from pyconnect_cli.acting.workers import WorkerHealth
from pyconnect_cli.kafka.model import OpenProducer, SinkPosition, TopicPartition
from pyconnect_cli.overview.rows import ClusterLook, Positions, WorkerLook
from pyconnect_cli.rest.agent_client import AgentChild, AgentInfo
from pyconnect_cli.rest.model import (
    ConnectorInfo,
    ConnectorStatus,
    ConnectorView,
    InstanceState,
    TaskState,
)

TRACE = (
    "org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask\n"
    "\tat org.apache.kafka.connect.runtime.WorkerSinkTask.deliverMessages\n"
    "Caused by: java.lang.IllegalStateException: disk full\n"
)
HANGING = OpenProducer(
    partition=TopicPartition("t", 0),
    producer_id=7,
    epoch=1,
    coordinator_epoch=2,
    last_ms=0,
    first_offset=40,
)


def view(
    name: str,
    *tasks: str,
    state: str = "RUNNING",
    kind: str = "source",
    worker: str = "w1:8083",
    trace: str = TRACE,
    config: Mapping[str, str] | None = None,
) -> ConnectorView:
    """Return a connector whose FAILED tasks have a trace."""
    return ConnectorView(
        name=name,
        info=ConnectorInfo(
            name=name, config=config or {"connector.class": "org.example.Some"}, type=kind
        ),
        status=ConnectorStatus(
            name=name,
            type=kind,
            connector=InstanceState(state=state, worker_id=worker),
            tasks=tuple(
                TaskState(
                    id=number,
                    state=task,
                    worker_id=worker,
                    trace=trace if task == "FAILED" else None,
                )
                for number, task in enumerate(tasks)
            ),
        ),
    )


def worker(
    url: str = "http://w1:8083", status: str = "healthy", message: str = "", silence: str = ""
) -> WorkerLook:
    """Return a worker without an admin interface."""
    return WorkerLook(
        health=WorkerHealth(url=url, status=status, message=message, version="4.3.1"),
        silence=silence,
    )


def agent(
    url: str = "http://w1:8083",
    *,
    phase: str = "disabled",
    leader: bool = False,
    rates: Mapping[str, float] | None = None,
    children: Sequence[AgentChild] = (),
) -> WorkerLook:
    """Return an agent."""
    return WorkerLook(
        health=WorkerHealth(url=url, status="healthy", message="ready", version="4.3.1"),
        info=AgentInfo(
            url=url,
            state="active",
            version="4.3.1",
            pid=1,
            leader=leader,
            generation=3,
            phase=phase,
            config_outdated=False,
            raw={},
        ),
        children=tuple(children),
        rates=rates or {},
    )


def child(
    connector: str, task: int | None, *, pid: int | None = 10, rss: int = 2**20
) -> AgentChild:
    """Return a child process of an agent."""
    return AgentChild(
        url="http://w1:8083",
        connector=connector,
        task=task,
        state="RUNNING",
        pid=pid,
        since_ms=1,
        rss_bytes=rss,
        responsive=True,
        last_activity_ms=None,
        last_commit_ms=None,
        queue_size=None,
        cpu_percent=None,
        memory_limit=None,
        cpu_limit=None,
        restarts=None,
        raw={},
    )


def look(
    *views: ConnectorView,
    workers: Sequence[WorkerLook] | None = None,
    positions: Positions | None = None,
    hanging: tuple[OpenProducer, ...] | None = None,
    time_s: float = 0.0,
    doubts: tuple[str, ...] = (),
) -> ClusterLook:
    """Return a look at a cluster, with one worker unless `workers` are given."""
    return ClusterLook(
        time_s=time_s,
        kafka_cluster_id="k",
        workers=(worker(),) if workers is None else tuple(workers),
        views={each.name: each for each in views},
        positions=positions,
        hanging=hanging,
        doubts=doubts,
    )


def positions(time_s: float, **places: Sequence[tuple[int | None, int | None]]) -> Positions:
    """Return the positions of sinks in the partitions of topic `t`: (offset, end) of each."""
    return Positions(
        time_s=time_s,
        places={
            name: {TopicPartition("t", at): SinkPosition(*place) for at, place in enumerate(found)}
            for name, found in places.items()
        },
    )
