"""Gather the facts behind ACLs: workers, connectors, topics, and reports of brokers and agents."""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace

from pyconnect_cli.acls.options import AclOptions
from pyconnect_cli.acls.plan.check import AclReport, check
from pyconnect_cli.acting.workers import ask_workers, worker_urls
from pyconnect_cli.errors import (
    NotFound,
    PreconditionFailed,
    PyconnectError,
    ServerError,
    Unreachable,
    UsageError,
    WaitTimedOut,
)
from pyconnect_cli.kafka.admin import (
    existing_topics,
    has_old_brokers,
    kafka_cluster,
    kafka_protocol,
    list_acls,
)
from pyconnect_cli.kafka.reader import task_counts
from pyconnect_cli.rest.agent_client import AgentClient
from pyconnect_cli.rest.model import Json, as_list, as_object, optional_text
from pyconnect_cli.session import Session
from pyconnect_cli.settings.given_files import worker_properties
from pyconnect_clients.acls.model import (
    CLUSTER,
    Evidence,
    GrantOperation,
    ProbeAnswer,
    ProbeKey,
    Resource,
    ResourceType,
    Role,
)
from pyconnect_clients.acls.needs import (
    SHARED_TOPICS,
    TOOL,
    ClusterFacts,
    ConnectorFacts,
    WorkerFacts,
)
from pyconnect_clients.connect_names import Phase

_AT_ONCE = 8
PURPOSE = "listing ACLs needs Kafka itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """The input of `check`."""

    facts: ClusterFacts
    phase: Phase
    evidence: Evidence

    def report(self) -> AclReport:
        """Return the needs of the phase, each with its verdict."""
        return check(self.facts, self.phase, self.evidence)


def gather(session: Session, options: AclOptions) -> Gathered:
    """Ask workers, agents and known brokers; by default about the phase after the workers' own.

    UsageError when no worker's configuration is known: there are only Java workers, and no file of
    theirs was given.
    """
    workers = [*file_workers(options), *_agents(session, options)]
    if not workers:
        raise UsageError(
            "no worker's configuration is known: Java workers do not report it",
            hint="give --worker-config worker.properties, or --worker-property for each of"
            f" group.id, {', '.join(SHARED_TOPICS)}",
        )
    wanted = options.phase
    if wanted is None:
        wanted = min((worker.phase for worker in workers), key=lambda p: p.rank).following

    def ask(url: str) -> Json | None:
        try:
            with AgentClient(session.exchange_with(url)) as agent:
                return agent.acls(wanted.value)
        except PreconditionFailed:
            return None  # an agent of a version without this report

    urls = [worker.name for worker in workers if "://" in worker.name]
    # All agents ask their brokers at the same time.
    with ThreadPoolExecutor(_AT_ONCE) as executor:
        answers = list(executor.map(ask, urls))
    reports = {url: answer for url, answer in zip(urls, answers, strict=True) if answer is not None}
    connectors = _connectors(session, options, workers, reports)
    for at, worker in enumerate(workers):
        if worker.name in reports:
            told = as_object(reports[worker.name]["principals"])
            principals = {Role(client): str(name) for client, name in told.items() if name}
            workers[at] = replace(worker, principals=principals)
    facts = ClusterFacts(
        workers=tuple(workers), connectors=tuple(connectors), principals=options.principals
    )
    facts, evidence = _asked_brokers(session, facts)
    if options.probe or evidence.refused:
        files = [worker for worker in workers if not worker.is_agent]
        reports |= probed_here(session, facts, wanted, files)
    return Gathered(
        facts=facts,
        phase=wanted,
        evidence=replace(
            evidence,
            probes={**evidence.probes, **_probes(reports)},
            super_users=options.super_users,
            allow_everyone=options.allow_everyone,
            hosts=options.hosts,
        ),
    )


def file_workers(options: AclOptions) -> list[WorkerFacts]:
    """Read the workers' files that the user gave; UsageError names missing properties."""
    workers = []
    for path in options.worker_configs:
        merged = {**worker_properties(path), **dict(options.worker_properties)}
        workers.append(WorkerFacts(name=path, properties=merged))
    if not workers and options.worker_properties:
        workers.append(WorkerFacts(name="worker", properties=dict(options.worker_properties)))
    for worker in workers:
        missing = [key for key in ("group.id", *SHARED_TOPICS) if not worker.properties.get(key)]
        if missing:
            raise UsageError(
                f"{worker.name}: a distributed worker needs {', '.join(missing)}",
                hint="give it with --worker-property KEY=VALUE",
            )
    return workers


def _agents(session: Session, options: AclOptions) -> list[WorkerFacts]:
    """Return the agents among the workers; Java workers report nothing about grants."""
    agents = []
    try:
        urls = worker_urls(session, everywhere=True)
    except Unreachable:
        if not (options.worker_configs or options.worker_properties):
            raise
        urls = []  # a file is enough, and no worker runs yet
    answers = ask_workers(session, urls, lambda exchange: AgentClient(exchange).config())
    for url, properties in zip(urls, answers, strict=True):
        if isinstance(properties, PreconditionFailed):
            continue
        if isinstance(properties, Unreachable):
            session.output.warning(f"{properties.message}: its grants are not probed")
            continue
        if isinstance(properties, PyconnectError):
            raise properties
        if properties.get("group.id"):
            merged = {**properties, **dict(options.worker_properties)}
            agents.append(WorkerFacts(name=url, properties=merged, is_agent=True))
    return agents


def _connectors(
    session: Session,
    options: AclOptions,
    workers: Sequence[WorkerFacts],
    reports: Mapping[str, Json],
) -> list[ConnectorFacts]:
    try:
        found = session.client.connector_views(options.connectors)
    except Unreachable as error:
        if not (options.worker_configs or options.worker_properties):
            raise
        session.output.warning(f"{error.message}: only the workers' own grants are looked at")
        found = {}
    else:
        if unknown := sorted(set(options.connectors) - set(found)):
            raise NotFound(
                f"no connector {', '.join(unknown)}", hint="list them: pyconnect connectors list"
            )
    views = [found[name] for name in sorted(found)]
    counts = _task_counts(session, workers, reports)

    def active_topics(connector: str) -> Sequence[str]:
        try:
            return session.client.connector_topics(connector)
        except PyconnectError:
            # Topic tracking may be switched off; the note on unknown topics names the remedy.
            return ()

    sources = [view.name for view in views if view.type != "sink"]
    with ThreadPoolExecutor(_AT_ONCE) as executor:
        active = dict(zip(sources, executor.map(active_topics, sources), strict=True))
    return [
        ConnectorFacts(
            name=view.name,
            type=view.type,
            config=view.config,
            tasks=len(view.info.tasks) if view.info else 0,
            fenced_tasks=counts.get(view.name),
            topics=(*active.get(view.name, ()), *options.topics.get(view.name, ())),
        )
        for view in views
    ]


def _task_counts(
    session: Session, workers: Sequence[WorkerFacts], reports: Mapping[str, Json]
) -> Mapping[str, int]:
    """Return task counts from agents, else from the config topic; empty if neither is known.

    Without task counts some of the needed ids may be missing.
    """
    if reports:
        counts: dict[str, int] = {}
        for report in reports.values():
            for name, count in as_object(report["task_counts"]).items():
                counts[name] = max(counts.get(name, 0), int(str(count)))
        return counts
    topic = workers[0].properties.get("config.storage.topic")
    if not session.settings.kafka_bootstrap or not topic:
        return {}
    try:
        return task_counts(kafka_cluster(session, PURPOSE).librdkafka(), topic)
    except NotFound:
        return {}  # no worker runs yet
    except PyconnectError as error:
        session.output.warning(
            f"task count records were not read ({error.message}): grants for fencing the"
            " former tasks of a connector may be left out"
        )
        return {}


def _asked_brokers(session: Session, facts: ClusterFacts) -> tuple[ClusterFacts, Evidence]:
    """Complete the facts from the workers' Kafka cluster, given --kafka-bootstrap."""
    if not session.settings.kafka_bootstrap:
        return facts, Evidence()
    with kafka_protocol(session, PURPOSE) as protocol:
        listed = list_acls(protocol)
        username = kafka_cluster(session, PURPOSE).username
        completed = replace(
            facts,
            existing_topics={"": existing_topics(protocol, facts.topic_names())},
            old_brokers=has_old_brokers(protocol),
            tool=f"User:{username}" if username else None,
        )
    refused = listed.bindings is None and not listed.open
    looked = ProbeAnswer(not refused, f"listing the ACLs was {'refused' if refused else 'allowed'}")
    return completed, Evidence(
        bindings={} if listed.bindings is None else {"": listed.bindings},
        open_clusters=frozenset({""} if listed.open else ()),
        refused=frozenset({""} if refused else ()),
        probes={ProbeKey(Role.TOOL, TOOL, GrantOperation.DESCRIBE, CLUSTER): looked},
    )


def _probes(reports: Mapping[str, Json]) -> dict[ProbeKey, ProbeAnswer]:
    """Return the brokers' answers to agents; if they differ, one refusal counts as the answer."""
    found: dict[ProbeKey, ProbeAnswer] = {}
    for url, report in sorted(reports.items()):
        for entry in map(as_object, as_list(report["grants"])):
            verdict = str(entry["verdict"])
            allowed = {"proven": True, "denied": False}.get(verdict)
            key = ProbeKey(
                Role(str(entry["client"])),
                optional_text(entry["connector"]) or url,
                GrantOperation(str(entry["operation"])),
                Resource(ResourceType(str(entry["resource_type"])), str(entry["resource"])),
            )
            former = found.get(key)
            if former is None or former.allowed is None or allowed is False:
                found[key] = ProbeAnswer(allowed, f"{entry['evidence']} ({url})")
    return found


_COMMAND = [sys.executable, "-m", "pyconnect_agent.worker.acls"]
_EXIT_CONFIG = 2
# Values for missing keys that only a running worker needs.
_UNIMPORTANT = {"key.converter": "unused", "value.converter": "unused"}


def probed_here(
    session: Session, facts: ClusterFacts, phase: Phase, workers: Iterable[WorkerFacts]
) -> dict[str, Json]:
    """Ask brokers as the clients of Java workers would; return a report like an agent's for each.

    A failure becomes a warning. The agent's program asks, because the questions are the agent's
    own. Properties go over a pipe, never over a command line.
    """
    reports: dict[str, Json] = {}
    for worker in workers:
        try:
            question = {
                "properties": {**_UNIMPORTANT, **worker.properties},
                "phase": phase.value,
                "connectors": [asdict(connector) for connector in facts.connectors],
            }
            try:
                ended = subprocess.run(
                    _COMMAND,
                    input=json.dumps(question),
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=max(session.budget.remaining_s(), 1.0),
                )
            except subprocess.TimeoutExpired as exc:
                raise WaitTimedOut("the brokers did not answer in time") from exc
            if ended.returncode == _EXIT_CONFIG:
                raise UsageError(ended.stderr.strip())
            if ended.returncode != 0:
                raise ServerError(f"the probe ended with code {ended.returncode}")
            reports[worker.name] = as_object(json.loads(ended.stdout))
        except PyconnectError as error:
            session.output.warning(f"{worker.name}: its clients were not probed: {error.message}")
    return reports
