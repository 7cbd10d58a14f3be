"""Looks at a Connect cluster: the group at its coordinator, then every worker, all at once.

A look takes about LOOK_S and the time for the states of connectors. It raises only errors of Kafka;
a worker that does not answer is an observation. This module changes nothing, and never disturbs a
living producer. The layout of a member's bytes in the group (big endian, a text is its length as
int16 and UTF-8):

    metadata    int16 version · text REST URL · int64 config offset [· nullable bytes]
    assignment  int16 version · int16 error · text leader's member id · text leader's URL · …
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from pyconnect_cli.errors import (
    Forbidden,
    NotFound,
    PreconditionFailed,
    PyconnectError,
    ServerError,
    Unreachable,
)
from pyconnect_cli.kafka.admin import refused
from pyconnect_cli.kafka.transactions import describe_transactions, list_transactional_ids
from pyconnect_cli.rest.agent_client import AgentClient
from pyconnect_cli.rest.answers import Validation
from pyconnect_cli.rest.client import ConnectClient
from pyconnect_cli.rest.endpoint import Endpoint, Limits
from pyconnect_cli.rest.exchange import Exchange
from pyconnect_cli.rest.model import ConnectorView
from pyconnect_cli.rest.request import RestRequest
from pyconnect_cli.settings.given_files import Inventory
from pyconnect_cli.upgrade.plan.model import (
    Kind,
    Means,
    OpenTransaction,
    PhaseSource,
    UpgradedWorker,
    View,
)
from pyconnect_clients.connect_names import Phase, leader_transactional_id

if TYPE_CHECKING:
    from pyconnect_clients.brokers.protocol import KafkaProtocol


CONNECT = "connect"
COORDINATOR_S = 15.0
COORDINATOR_PAUSE_S = 0.2
MEMBER_S = 30.0
MEMBER_PAUSE_S = 0.5
_NONE, _NOT_AUTHORIZED, _NO_SUCH_GROUP = 0, 30, 69
_WITH_INTROSPECTION = (3, 0)
_MARGIN_MS = 10_000
"""The time between a coordinator's scans for expired transactions, added to their timeout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One worker in the group; `url` has no slash at its end."""

    id: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerGroup:
    """A group; during a rebalance the members' URLs and the leader may be unknown."""

    id: str
    state: str = "Dead"
    type: str = ""
    protocol: str = ""
    members: tuple[Member, ...] = ()
    leader_url: str | None = None


def describe_group(protocol: KafkaProtocol, group_id: str) -> WorkerGroup:
    """Ask the group's coordinator; Forbidden without Describe on the group.

    A group that does not exist is Dead. The function waits while the coordinator moves.
    """
    until = time.monotonic() + COORDINATOR_S
    while not (found := _described(protocol, [group_id])):
        if time.monotonic() > until:
            raise ServerError(f"Kafka: no coordinator of group {group_id} answers")
        time.sleep(COORDINATOR_PAUSE_S)
    return found[0]


def connect_groups(protocol: KafkaProtocol) -> list[WorkerGroup]:
    """Return the groups of Connect clusters that this user may describe."""
    from kafka.protocol.admin import ListGroupsRequest

    requests = [(ListGroupsRequest(), node) for node in protocol.brokers()]
    answers = protocol.send_all("list groups", requests)
    groups = [group for answer in answers for group in answer.groups]
    names = sorted({group.group_id for group in groups if group.protocol_type == CONNECT})
    return _described(protocol, names) if names else []


def group_of_workers(protocol: KafkaProtocol, urls: Sequence[str]) -> str:
    """Return the group that one of these workers is a member of; NotFound otherwise.

    A worker that was just restarted becomes a member again, and a rebalance hides the members'
    URLs; the function waits for both.
    """
    wanted = {url.rstrip("/") for url in urls}
    until = time.monotonic() + MEMBER_S
    while True:
        groups = connect_groups(protocol)
        for group in groups:
            if wanted & {member.url for member in group.members}:
                return group.id
        if time.monotonic() > until:
            break
        time.sleep(MEMBER_PAUSE_S)
    names = ", ".join(group.id for group in groups) or "none"
    raise NotFound(
        f"no Connect group has {' or '.join(sorted(wanted))} as a member (groups: {names})",
        hint="name the group: --group NAME",
    )


def leader_claimed(protocol: KafkaProtocol, leader: str) -> bool | None:
    """Return whether the brokers know the leader's transactional id; None if undetermined.

    A leader at `preparing` or `enabled` initialises it before any other work (KIP-618).
    """
    if protocol.broker_version < _WITH_INTROSPECTION:
        return None
    from kafka.errors import KafkaError, TransactionalIdNotFoundError

    try:
        protocol.admin.describe_transactions([leader])
    except TransactionalIdNotFoundError:
        return False
    except KafkaError:
        return None
    return True


def open_transactions(
    protocol: KafkaProtocol, group_id: str, leader: str
) -> frozenset[OpenTransaction]:
    """Return the open transactions of the group's ids; none before Kafka 3.0."""
    if protocol.broker_version < _WITH_INTROSPECTION:
        return frozenset()
    ids = [
        name
        for name in list_transactional_ids(protocol, states=("Ongoing",))
        if name == leader or name.startswith(f"{group_id}-")
    ]
    return frozenset(
        OpenTransaction(
            transactional_id=found.transactional_id,
            started_ms=found.started_ms,
            timeout_ms=found.timeout_ms,
        )
        for found in describe_transactions(protocol, ids)
        if found.started_ms is not None
    )


def hanging(transactions: Iterable[OpenTransaction]) -> tuple[str, ...]:
    """Return the ids of transactions that are open beyond their timeout, sorted."""
    now_ms = time.time() * 1000
    return tuple(
        sorted(
            found.transactional_id
            for found in transactions
            if now_ms - found.started_ms > found.timeout_ms + _MARGIN_MS
        )
    )


def cluster_id(protocol: KafkaProtocol) -> str:
    """Return the id of the Kafka cluster, as its brokers report it."""
    return str(protocol.admin.describe_cluster()["cluster_id"])


def _described(protocol: KafkaProtocol, names: list[str]) -> list[WorkerGroup]:
    """Ask every broker: only the coordinators know the groups."""
    from kafka.protocol.admin import DescribeGroupsRequest

    requests = [(DescribeGroupsRequest(groups=names), node) for node in protocol.brokers()]
    if not requests:
        raise Unreachable("Kafka: no broker is known", hint="is --kafka-bootstrap right?")
    found = []
    for answer in protocol.send_all("describe groups", requests):
        for group in answer.groups:
            if group.error_code == _NOT_AUTHORIZED:
                raise Forbidden(
                    str(refused(group.error_code, f"describe {group.group_id}")),
                    hint="this command needs Describe on the workers' group",
                )
            if group.error_code == _NO_SUCH_GROUP:
                found.append(WorkerGroup(id=group.group_id))
            elif group.error_code == _NONE:
                found.append(_group(group))
    return found


# The library's answers have no types.
def _group(found: Any) -> WorkerGroup:
    of_connect = found.protocol_type == CONNECT
    members = []
    leader_url = None
    for member in found.members:
        url = _url_after(bytes(member.member_metadata or b""), 2) if of_connect else ""
        members.append(Member(id=member.member_id, url=url))
        assignment = bytes(member.member_assignment or b"")
        if of_connect and assignment:
            leader_url = _url_after(assignment, 4, skip=1) or leader_url
    return WorkerGroup(
        id=found.group_id,
        state=found.group_state,
        type=found.protocol_type,
        protocol=found.protocol_data,
        members=tuple(sorted(members, key=lambda member: member.url)),
        leader_url=leader_url,
    )


def _url_after(data: bytes, at: int, *, skip: int = 0) -> str:
    """Return the URL at `at`, or the text `skip` texts later; empty if there is none."""
    try:
        for _ in range(skip):
            at += 2 + int(struct.unpack_from(">h", data, at)[0])
        (length,) = struct.unpack_from(">h", data, at)
    except struct.error:
        return ""
    return data[at + 2 : at + 2 + length].decode("utf-8", errors="replace").rstrip("/")


LOOK_S = 5.0
STATES_S = 20.0
"""The time to read the states of all connectors: there may be thousands."""
AT_ONCE = 8
READY_STATES = frozenset({"active", "rebalancing"})


class Workers:
    """Connections to workers, by their advertised URL; kept open between looks."""

    def __init__(self, endpoint: Endpoint, inventory: Inventory, *, verbosity: int = 0) -> None:
        self.inventory = inventory
        self._endpoint = endpoint
        self._verbosity = verbosity
        self._exchanges: dict[str, Exchange] = {}

    def rest(self, url: str, budget_s: float = LOOK_S) -> ConnectClient:
        return ConnectClient(self._exchange(self.inventory.address(url), budget_s))

    def admin(self, url: str) -> AgentClient:
        return AgentClient(self._exchange(self.inventory.admin(url)))

    def close(self) -> None:
        for exchange in self._exchanges.values():
            exchange.close()

    def _exchange(self, address: str, budget_s: float = LOOK_S) -> Exchange:
        exchange = self._exchanges.get(address)
        if exchange is None:
            given = next((url for url in self._endpoint.urls if url.rstrip("/") == address), None)
            # The budget of a look limits its requests; this limit equals the longest budget.
            limits = Limits(request_s=STATES_S)
            endpoint = replace(self._endpoint, urls=(given or address,), limits=limits)
            exchange = Exchange(endpoint, verbosity=self._verbosity)
            self._exchanges[address] = exchange
        exchange.budget.renew(budget_s)
        return exchange


class Observer:
    """Looks at one cluster; owned by one thread."""

    def __init__(self, workers: Workers, protocol: KafkaProtocol, group_id: str) -> None:
        self.workers = workers
        self.protocol = protocol
        self.group_id = group_id
        self._kinds: dict[str, Kind] = {}

    def look(self, known: Iterable[str] = ()) -> View:
        """Return a view; it includes `known` workers even if they are no longer members."""
        group = describe_group(self.protocol, self.group_id)
        members = {member.url: member.id for member in group.members if member.url}
        urls = sorted({*members, *known, *self.workers.inventory.workers})
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = list(pool.map(lambda url: self._worker(url, members.get(url), group), urls))
        answering = sorted((w for w in found if w.reachable), key=lambda worker: not worker.leader)
        ready = [worker.url for worker in answering if worker.ready]
        views = _first_answer(ready, lambda url: self.workers.rest(url, STATES_S).connector_views())
        agents = [worker.url for worker in answering if worker.kind is Kind.AGENT]
        # A Java leader writes under Kafka's id.
        config = _first_answer(agents, lambda url: self.workers.admin(url).config())
        leader = leader_transactional_id(self.group_id, config)
        transactions = open_transactions(self.protocol, self.group_id, leader)
        return View(
            group_id=self.group_id,
            cluster_id=next((worker.cluster_id for worker in found if worker.cluster_id), ""),
            group_state=group.state,
            protocol=group.protocol,
            workers=tuple(found),
            instances=instances(views or {}, members),
            states_known=views is not None,
            hanging=hanging(transactions),
            open_transactions=transactions,
            leader_transactional_id=leader,
            stopped=tuple(n for n, view in (views or {}).items() if view.state == "STOPPED"),
            leader_writes=leader_claimed(self.protocol, leader),
        )

    def _worker(self, url: str, instance: str | None, group: WorkerGroup) -> UpgradedWorker:
        leads = url == group.leader_url and instance is not None
        commands = self.workers.inventory.commands(url)
        seen = UpgradedWorker(
            url=url,
            instance=instance,
            leader=leads,
            means=Means.COMMANDS if commands.can_change else Means.OPERATOR,
        )
        try:
            if self._kinds.get(url) is not Kind.JAVA:
                try:
                    return self._agent(seen)
                except PreconditionFailed:
                    self._kinds[url] = Kind.JAVA
            return java_worker(self.workers.rest(url), seen)
        except PyconnectError as error:
            # The worker may return as a worker of the other kind.
            self._kinds.pop(url, None)
            text = error.message
            if isinstance(error, Unreachable):
                text = text.rpartition(": ")[2]
            return replace(seen, reachable=False, reason=text)

    def _agent(self, seen: UpgradedWorker) -> UpgradedWorker:
        info = self.workers.admin(seen.url).info()
        self._kinds[seen.url] = Kind.AGENT
        phase = None if info.phase is None else Phase(info.phase)
        sha256 = info.raw.get("config_sha256")
        return replace(
            seen,
            kind=Kind.AGENT,
            version=info.version,
            cluster_id=self.workers.rest(seen.url).worker_info().kafka_cluster_id,
            phases=frozenset(Phase) if phase is None else frozenset({phase}),
            source=PhaseSource.UNKNOWN if phase is None else PhaseSource.TOLD,
            outdated=info.config_outdated,
            config_sha256=None if sha256 is None else str(sha256),
            drained=info.state == "drained",
            ready=info.state in READY_STATES,
            fences=True,
            means=Means.AGENT if seen.means is Means.OPERATOR else seen.means,
        )


Answer = TypeVar("Answer")


def _first_answer(urls: Iterable[str], question: Callable[[str], Answer]) -> Answer | None:
    """Ask workers in turn; None if no worker answers."""
    for url in urls:
        with suppress(PyconnectError):
            return question(url)
    return None


def instances(views: Mapping[str, ConnectorView], members: Mapping[str, str]) -> dict[str, str]:
    """Return states by name; an instance on a worker that has left the group runs nowhere."""
    alive = {urlsplit(url).netloc for url in members}
    found: dict[str, str] = {}
    for name, view in views.items():
        if view.status is None:
            continue
        parts = [(name, view.status.connector)]
        parts += [(f"{name}/{task.id}", task) for task in view.status.tasks]
        for part, state in parts:
            gone = state.worker_id not in alive and state.state in {"RUNNING", "RESTARTING"}
            found[part] = "UNASSIGNED" if gone else state.state
    return found


SUPPORT = "exactly.once.support"
NOT_ENABLED = "This worker does not have exactly-once source support enabled."
PROBE = "pyconnect-upgrade-probe"
HARMLESS = (
    "org.apache.kafka.connect.file.FileStreamSourceConnector",
    "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
)
FENCE_ANSWERS = frozenset({400, 401, 403, 404, 409, 503})
NOT_ENABLED_PHASES = frozenset({Phase.DISABLED, Phase.PREPARING})


def java_worker(client: ConnectClient, seen: UpgradedWorker) -> UpgradedWorker:
    """Complete the observation of a Java worker without any change; raises its answers' errors.

    `enabled`: the worker's validation accepts `exactly.once.support=required`. Otherwise the worker
    is `disabled` or `preparing`, which only its file shows.
    """
    info = client.worker_info()
    try:
        ready = client.health().status == "healthy"
    except (NotFound, PreconditionFailed):
        # Before 3.9 only an answer of its herder shows that the worker is ready.
        ready = True
        try:
            client.connector(PROBE)
        except NotFound:
            pass
        except PyconnectError:
            ready = False
    seen = replace(
        seen, kind=Kind.JAVA, version=info.version, cluster_id=info.kafka_cluster_id, ready=ready
    )
    sources = [plugin.class_name for plugin in client.plugins() if plugin.type == "source"]
    known = [name for name in HARMLESS if name in sources]
    plugin = next(iter((*known, *sources)), None)
    if plugin is None:
        return seen
    config = {"connector.class": plugin, "name": PROBE, "topic": PROBE, SUPPORT: "required"}
    errors = support_errors(client.validate(plugin, config))
    enabled = NOT_ENABLED not in errors
    return replace(
        seen,
        phases=frozenset({Phase.ENABLED}) if enabled else NOT_ENABLED_PHASES,
        source=PhaseSource.INFERRED,
    )


def has_fencing_endpoint(client: ConnectClient) -> bool | None:
    """Return whether the worker serves requests to fence; None if that cannot be determined.

    The request names a connector that does not exist, so it never fences.
    """
    answer = client.exchange.send(
        RestRequest(
            method="PUT",
            path=("connectors", PROBE, "fence"),
            query=(("forward", "false"),),
            accepted=FENCE_ANSWERS,
        )
    )
    message = answer.body.get("message") if isinstance(answer.body, dict) else None
    return fences(answer.status, str(message))


def fences(status: int, message: str) -> bool | None:
    """Read the answer to an unsigned request for a connector that does not exist."""
    match status:
        case 400 | 409 | 503:
            return True
        case 404:
            # The answer of the resource names the connector; the router's answer does not.
            return PROBE in message
        case _:
            return None


def support_errors(validation: Validation) -> tuple[str, ...]:
    """Return the errors of a validation that concern exactly-once."""
    return tuple(
        error for field in validation.fields if field.name == SUPPORT for error in field.errors
    )
