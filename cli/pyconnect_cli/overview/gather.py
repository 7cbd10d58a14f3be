"""Look at a whole cluster: its connectors, each of its workers, its brokers if they are known.

Workers are asked at once. A part that cannot be read becomes a doubt of the look.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pyconnect_cli.acting.workers import (
    ask_all,
    ask_workers,
    assigned_workers,
    urls_with,
    worker_health,
)
from pyconnect_cli.errors import NotFound, PreconditionFailed, PyconnectError, Unreachable
from pyconnect_cli.overview.rows import ClusterLook, Positions, WorkerLook
from pyconnect_cli.overview.status import HANGING_DOUBT
from pyconnect_cli.parsing.values import parse_duration
from pyconnect_cli.rest.agent_client import AgentClient
from pyconnect_cli.rest.exchange import Exchange
from pyconnect_cli.rest.model import ConnectorView
from pyconnect_cli.session import Session

if TYPE_CHECKING:
    from pyconnect_cli.kafka.admin import KafkaAdmin
    from pyconnect_cli.kafka.model import OpenProducer, SinkPosition, TopicPartition
    from pyconnect_cli.rest.offset_entries import OffsetEntry

    Places = Mapping[TopicPartition, SinkPosition]

# What asks brokers or reads offsets is imported where it is needed: many looks need neither.

Config = Mapping[str, str | None]


class Markers:
    """Reads as seldom as possible, because a live view looks every few seconds.

    The first look reads. A later look reads once if a sink has stopped moving: a sink that moves
    has records to read.
    """

    def __init__(self, read_through: Callable[[Config, Places], set[TopicPartition]]) -> None:
        self._read_through = read_through
        self._last: dict[str, Places] = {}
        self._judged: dict[str, Places] = {}

    def places(self, name: str, config: Config, places: Places) -> Places:
        """Return the places of a sink with `all_read` where no record is left."""
        from pyconnect_cli.offsets.stored import near_the_end

        last = self._last.get(name, places)
        judged = {
            partition: place
            for partition, place in self._judged.get(name, {}).items()
            if places.get(partition) == place._replace(all_read=False)
        }
        asked = {
            partition: place
            for partition, place in places.items()
            if near_the_end(place) and last.get(partition) == place and partition not in judged
        }
        read = self._read_through(config, asked) if asked else set()
        judged |= {
            partition: place._replace(all_read=partition in read)
            for partition, place in asked.items()
        }
        self._last[name], self._judged[name] = places, judged
        return {**places, **judged}


PURPOSE = "only Kafka's brokers know about lag and transactions"
RATES = frozenset({"source-record-write-rate", "sink-record-send-rate"})
SINKS_AT_ONCE = 8
FEW_NAMES = 3
JAVA = "Java workers do not report it"
ELSEWHERE = (
    "serves its admin interface at another address (admin.listeners); name it as `admin` in the"
    " context's inventory"
)


class Watcher:
    """Looks at one cluster as often as it is asked; not for several threads at once.

    It remembers the addresses without an admin interface and sends them no further requests that
    only agents answer.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._without_admin: dict[str, WorkerLook] = {}
        self._kafka: KafkaAdmin | None = None
        self._markers = Markers(self._all_read)

    def look(self, *, lag: bool = True) -> ClusterLook:
        """Look at connectors and workers, and with `lag` at the sinks' positions."""
        *_, look = self.stages(lag=lag)
        return look

    def stages(self, *, lag: bool) -> Iterator[ClusterLook]:
        """Yield what is known after the connectors, the workers and the positions."""
        session = self._session
        views = session.client.connector_views()
        kafka_cluster_id = session.client.worker_info().kafka_cluster_id
        look = ClusterLook(time_s=time.monotonic(), kafka_cluster_id=kafka_cluster_id, views=views)
        yield look
        urls = urls_with(session, assigned_workers(view.status for view in views.values()))
        workers = tuple(
            answer
            for answer in ask_workers(session, urls, self._worker)
            if isinstance(answer, WorkerLook)
        )
        look = replace(look, workers=workers, time_s=time.monotonic())
        yield look
        if not lag:
            return
        doubts: list[str] = []
        positions = None
        try:
            positions = self.positions(views.values(), doubts)
        except PyconnectError as error:
            doubts.append(f"lag: {error.message}")
        yield replace(look, positions=positions, doubts=tuple(doubts), time_s=time.monotonic())

    def positions(self, views: Iterable[ConnectorView], doubts: list[str]) -> Positions:
        """Return the positions of sinks. Without brokers the ends of partitions are not known."""
        from pyconnect_cli.kafka.model import sink_positions, sink_topics
        from pyconnect_cli.offsets.stored import sink_offsets

        sinks = [view for view in views if view.type == "sink"]
        stored: dict[str, tuple[Mapping[str, str | None], Sequence[OffsetEntry]]] = {}
        unread: dict[str, list[str]] = {}
        for start in range(0, len(sinks), SINKS_AT_ONCE):
            part = sinks[start : start + SINKS_AT_ONCE]
            answers = ask_all(part, partial(sink_offsets, self._session))
            for sink, answer in zip(part, answers, strict=True):
                if isinstance(answer, PyconnectError):
                    if not isinstance(answer, NotFound):  # the connector was deleted meanwhile
                        unread.setdefault(answer.message, []).append(sink.name)
                else:
                    stored[sink.name] = (sink.config, answer)
            silent = [answer for answer in answers if isinstance(answer, Unreachable)]
            if len(silent) == len(part):
                # Each further part would wait as long.
                unread[silent[0].message] += [sink.name for sink in sinks[start + len(part) :]]
                break
        for reason, names in unread.items():
            more = f" and {len(names) - FEW_NAMES} more" if len(names) > FEW_NAMES else ""
            doubts.append(f"lag of {', '.join(names[:FEW_NAMES])}{more}: {reason}")
        wanted = {
            name: (sink_topics(config, entries), entries)
            for name, (config, entries) in stored.items()
        }
        every = {topic for topics, _ in wanted.values() for topic in topics}
        ends: dict[TopicPartition, int] = {}
        if every and self._session.settings.kafka_bootstrap:
            from pyconnect_cli.kafka.admin import kafka_admin

            if self._kafka is None:
                self._kafka = kafka_admin(self._session, PURPOSE)
            ranges = self._kafka.ranges(self._kafka.partitions(every))
            ends = {partition: found.latest for partition, found in ranges.items()}
        time_s = time.monotonic()
        places = {
            name: self._markers.places(name, stored[name][0], sink_positions(topics, entries, ends))
            for name, (topics, entries) in wanted.items()
        }
        return Positions(time_s=time_s, places=places)

    def _all_read(
        self, config: Mapping[str, str | None], positions: Mapping[TopicPartition, SinkPosition]
    ) -> set[TopicPartition]:
        from pyconnect_cli.kafka.admin import kafka_cluster
        from pyconnect_cli.offsets.stored import all_read

        settings = kafka_cluster(self._session, PURPOSE).librdkafka()
        return all_read(settings, config, positions)

    def _worker(self, exchange: Exchange) -> WorkerLook:
        """Ask one worker; a failed request shows in its health."""
        (url,) = exchange.urls
        health = worker_health(exchange)
        if health.status in {"unreachable", "failed"}:
            return WorkerLook(health=health, silence="no answer")
        if (earlier := self._without_admin.get(url)) is not None:
            return replace(earlier, health=health)
        agent = AgentClient(exchange)
        try:
            info = agent.info()
            children, metrics = tuple(agent.children()), agent.metrics()
        except PreconditionFailed:
            silence = f"{url} {ELSEWHERE}" if health.agent else JAVA
            found = self._without_admin[url] = WorkerLook(health=health, silence=silence)
            return found
        except PyconnectError as error:
            # The credentials are others: show the public part.
            silence = f"{error.message} ({error.hint})" if error.hint else error.message
            return WorkerLook(health=health, silence=silence)
        return WorkerLook(
            health=health,
            info=info,
            children=children,
            rates={
                f"{metric.tags['connector']}/{metric.tags['task']}": float(metric.value)
                for metric in metrics
                if metric.name in RATES
                and isinstance(metric.value, int | float)
                and {"connector", "task"} <= metric.tags.keys()
            },
        )


def hanging_of(
    session: Session, group_id: str | None
) -> tuple[tuple[OpenProducer, ...] | None, tuple[str, ...]]:
    """Return the transactions that will never end, None where they are not known, and why."""
    if not session.settings.kafka_bootstrap:
        return None, ()
    from pyconnect_cli.transactions.find import MIN_IDLE, asked_cluster, cluster_topics, hanging_in

    idle_ms = round(parse_duration(MIN_IDLE) * 1000)
    try:
        topics = cluster_topics(session, asked_cluster(session, group_id))
        return tuple(hanging_in(session, topics, idle_ms, PURPOSE)), ()
    except PyconnectError as error:
        reason = f"{error.message} ({error.hint})" if error.hint else error.message
        return None, (f"{HANGING_DOUBT}: {reason}",)
