"""The findings that forbid an upgrade before its first step, and the warnings. Pure.

Each check is a generator of findings over one view. The hint of a blocker says how to
remove it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain

from pyconnect_cli.upgrade.plan.model import Kind, Means, PhaseSource, UpgradedWorker, View
from pyconnect_cli.upgrade.plan.run import (
    FIRST_WITH_PHASES,
    FIRST_WITH_STOPPED,
    FIRST_WITHOUT_KNOWN_FAULTS,
    PROTOCOLS,
    Started,
    is_before,
)
from pyconnect_clients.connect_names import Phase, alter_transactional_id, collisions

LEAST_TRANSACTION_TIMEOUT_MS = 90_000
AGENTS_ONLY = (
    "only pyconnect's own agents report their phase; the phase of a Java worker is inferred"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseWish:
    """The requested change. `only`: workers of --worker; `inventory`: workers of the file."""

    target: Phase
    direct: bool = False
    full_stop: bool = False
    hard: bool = False
    only: tuple[str, ...] = ()
    inventory: tuple[str, ...] = ()
    accept_unknown: bool = False
    declared: bool = False
    strict: bool = False

    def is_of(self, run: Started) -> bool:
        """Return whether a run that was started makes this change."""
        asked = (self.target, self.full_stop, self.hard, self.only)
        return asked == (run.target, run.full_stop, run.hard, run.only)


@dataclass(frozen=True, slots=True)
class PlanFinding:
    """One finding; a blocker refuses the upgrade, `hint` is the remedy."""

    message: str
    hint: str = ""
    blocks: bool = True

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


warning = partial(PlanFinding, blocks=False)

Check = Callable[[View, PhaseWish], Iterator[PlanFinding]]
CHECKS: list[Check] = []


def _check(check: Check) -> Check:
    CHECKS.append(check)
    return check


def findings(view: View, wish: PhaseWish) -> tuple[PlanFinding, ...]:
    """Return all findings, in the order of the checks."""
    return tuple(finding for check in CHECKS for finding in check(view, wish))


@_check
def _group(view: View, wish: PhaseWish) -> Iterator[PlanFinding]:
    """The group is stable, has a leader, and has the members of the inventory."""
    if not view.stable:
        yield PlanFinding(
            f"a rebalance is under way: group {view.group_id} is {view.group_state}",
            "wait until it is complete, then try again",
        )
    elif view.leader is None:
        yield PlanFinding(f"group {view.group_id} has no leader that is a member")
    members = {worker.url for worker in view.workers if worker.member}
    if wish.inventory and (unknown := sorted(members - set(wish.inventory))):
        yield PlanFinding(
            f"{', '.join(unknown)} is a member of the group but not in the inventory",
            "add it, or stop it",
        )
    if missing := [worker.url for worker in view.workers if not worker.member]:
        yield PlanFinding(
            f"{', '.join(missing)} is not a member of group {view.group_id}",
            "start it, undrain it, or leave it out",
        )
    if wish.only and (strangers := [url for url in wish.only if url not in members]):
        yield PlanFinding(
            f"{', '.join(strangers)}: not a worker of this cluster",
            f"its workers are {', '.join(sorted(members))}",
        )


@_check
def _workers(view: View, _wish: PhaseWish) -> Iterator[PlanFinding]:
    """Every worker answers, has a fitting version, and runs with its present properties file."""
    clusters = {worker.cluster_id for worker in view.workers if worker.cluster_id}
    if len(clusters) > 1:
        yield PlanFinding(f"the workers use several Kafka clusters: {', '.join(clusters)}")
    for worker in view.workers:
        if not worker.reachable:
            yield PlanFinding(
                f"{worker.url} does not answer: {worker.reason}",
                "every worker must answer; give `address` in the inventory if this host"
                " reaches it at another address",
            )
        elif _older(worker, FIRST_WITH_PHASES):
            yield PlanFinding(
                f"{worker.url} runs version {worker.version}: exactly-once support came with 3.3.0",
                "replace its software first",
            )
        elif worker.fences is False:
            yield PlanFinding(
                f"{worker.url} has no fencing endpoint: its software is older than 3.3.0",
                "replace its software first",
            )
        elif worker.outdated:
            yield PlanFinding(
                f"{worker.url}: its properties file was changed after its start",
                "restart it first, or revert the change",
            )
        elif _older(worker, FIRST_WITHOUT_KNOWN_FAULTS):
            yield warning(
                f"{worker.url} runs version {worker.version}; faults of exactly-once that"
                " matter were repaired by 3.4.1"
            )


def _older(worker: UpgradedWorker, first: tuple[int, int, int]) -> bool:
    """Return whether a worker of Apache's is older; agents have other version numbers."""
    return worker.kind is Kind.JAVA and is_before(worker.version, first)


@_check
def _protocol(view: View, _wish: PhaseWish) -> Iterator[PlanFinding]:
    """Signatures of internal requests need `sessioned`; the group uses its weakest protocol."""
    if view.protocol in PROTOCOLS and view.protocol != "sessioned":
        name = "eager" if view.protocol == "default" else view.protocol
        yield warning(
            f"the group's protocol is {name}: requests between workers are not signed,"
            " because at least one worker supports no better protocol",
            "set connect.protocol=sessioned on every worker, in a separate rolling restart",
        )


@_check
def _java_phases(view: View, wish: PhaseWish) -> Iterator[PlanFinding]:
    """The REST API of a Java worker does not show whether it is `disabled` or `preparing`."""
    for worker in view.workers:
        if not worker.reachable or worker.source is PhaseSource.TOLD:
            continue
        if worker.source is PhaseSource.UNKNOWN:
            yield PlanFinding(
                f"{worker.url}: its phase cannot be determined: it has no source plugin for"
                " the test",
                "give a `show` command in the inventory",
            )
        elif len(worker.phases) > 1 and wish.target is Phase.ENABLED and not wish.full_stop:
            yield PlanFinding(
                f"{worker.url} is a Java worker: its REST API does not show whether it is"
                " disabled or preparing",
                "give a `show` command in the inventory that prints the phase in its file;"
                " or check by hand that every Java worker is preparing, then give --declared",
                blocks=not wish.declared,
            )
        else:
            yield warning(f"{worker.url}: phase {worker.phase_text}; {AGENTS_ONLY}")


@_check
def _health(view: View, _wish: PhaseWish) -> Iterator[PlanFinding]:
    """Warn about instances that are FAILED already; refuse if transactions hang."""
    if view.hanging:
        yield PlanFinding(
            f"open beyond its timeout: the transaction of {', '.join(view.hanging)}",
            "show it: pyconnect transactions find-hanging",
        )
    if not view.states_known:
        yield PlanFinding(
            "no worker reports the states of connectors and tasks",
            "check whether the workers answer: pyconnect health",
        )
    if failed := sorted(view.failed()):
        yield warning(f"already FAILED: {', '.join(failed)}")


@_check
def _acls(view: View, wish: PhaseWish) -> Iterator[PlanFinding]:
    """The grants of the next phase, for every principal."""
    command = f"pyconnect acls check --phase {wish.target}"
    for blocker in view.acl_blockers:
        yield PlanFinding(f"missing ACL: {blocker}", f"see all: {command}")
    for unknown in view.acl_unknown:
        yield PlanFinding(
            f"ACL not known: {unknown}",
            f"see {command}; or continue with --accept-unknown",
            blocks=not wish.accept_unknown,
        )


@_check
def _brokers(view: View, wish: PhaseWish) -> Iterator[PlanFinding]:
    """Transactions work, and the topics of Connect have the required settings."""
    brokers = view.brokers
    if not brokers.transactions and wish.target is not Phase.DISABLED:
        yield PlanFinding(
            "the brokers do not support transactions, which came with Kafka 0.11",
            "exactly-once needs newer brokers",
        )
    for problem in brokers.problems:
        yield PlanFinding(problem)
    for remark in brokers.warnings:
        yield warning(remark)
    most_ms = brokers.max_transaction_timeout_ms
    if most_ms is None or wish.target is not Phase.ENABLED:
        return
    if most_ms < LEAST_TRANSACTION_TIMEOUT_MS:
        yield PlanFinding(
            f"transaction.max.timeout.ms of the brokers is {most_ms}; fencing needs"
            f" {LEAST_TRANSACTION_TIMEOUT_MS}",
            "raise it on every broker",
        )
    for source in view.sources:
        if source.transaction_timeout_ms > most_ms:
            yield PlanFinding(
                f"{source.name}: transaction.timeout.ms {source.transaction_timeout_ms} is"
                f" above the brokers' transaction.max.timeout.ms {most_ms}",
                "lower the connector's or raise the brokers'",
            )


@_check
def _sources(view: View, wish: PhaseWish) -> Iterator[PlanFinding]:
    """Sources that cannot do exactly-once, and those that require it on a downgrade."""
    for source in view.sources:
        if wish.target is Phase.ENABLED:
            if source.preflight:
                yield PlanFinding(
                    f"{source.name}: {source.preflight[0]}",
                    "see its documentation; it keeps running, and its records may repeat",
                    blocks=wish.strict or source.requires_exactly_once,
                )
            interval_ms = source.boundary_interval_ms
            if (
                source.boundary == "interval"
                and interval_ms is not None
                and interval_ms >= source.transaction_timeout_ms
            ):
                yield warning(
                    f"{source.name}: its transactions last {interval_ms} ms, its"
                    f" transaction.timeout.ms is {source.transaction_timeout_ms}",
                    "lower transaction.boundary.interval.ms or raise the timeout",
                )
        elif source.requires_exactly_once:
            yield warning(
                f"{source.name} requires exactly-once (exactly.once.support=required):"
                " after the downgrade every change of its configuration is refused",
                f"pyconnect connectors patch {source.name} --set exactly.once.support=requested",
            )


@_check
def _clients(view: View, wish: PhaseWish) -> Iterator[PlanFinding]:
    """Every client uses one cluster, with settings that transactions allow."""
    if wish.target is Phase.DISABLED:
        return
    why = "no transactional producer can be created with it"
    for setting in view.worker_settings.breaking:
        yield PlanFinding(f"{setting}: {why}, so a leader could not write", "remove it")
    for setting in view.worker_settings.replaced:
        yield warning(f"{setting} will be ignored")
    for source in view.sources if wish.target is Phase.ENABLED else ():
        for setting in source.breaking:
            yield PlanFinding(
                f"{source.name}: {setting}: {why}, so its tasks would fail",
                "remove it, or set the default value",
            )
        for setting in source.replaced:
            yield warning(f"{source.name}: {setting} will be ignored")
        if source.several_clusters:
            yield PlanFinding(
                f"{source.name}: its producer, consumer and admin client have different"
                " clusters: offsets and fencing would go to another cluster than its records",
                "give producer, consumer and admin the same bootstrap.servers",
            )
        elif source.own_cluster:
            yield warning(
                f"{source.name} writes to another cluster, which was not checked: its"
                " offsets topic, limits and open transactions there are not known"
            )


@_check
def _ids(view: View, wish: PhaseWish) -> Iterator[PlanFinding]:
    """An id has one owner; while no worker here is transactional, no producer uses the ids."""
    if wish.target is not Phase.ENABLED:
        return
    ids = {source.name: source.transactional_ids(view.group_id) for source in view.sources}
    for collision in collisions(view.leader_transactional_id, ids):
        yield warning(f"{collision}, which would fence each other", "rename a connector")
    for other in view.other_groups:
        for name in ids:
            own = alter_transactional_id(view.group_id, name)
            # A group with a shorter name matches every connector; only ids in use show a collision.
            if len(other) > len(view.group_id) and own.startswith(f"{other}-"):
                yield warning(
                    f"the transactional ids of {name} would be those of a connector"
                    f" {own.removeprefix(f'{other}-')} in group {other}",
                    "check the connectors of that group",
                )
    if any(Phase.ENABLED in worker.phases for worker in view.workers if worker.reachable):
        return
    in_use = {found.transactional_id for found in view.open_transactions}
    for name in sorted(in_use.intersection(chain.from_iterable(ids.values()))):
        yield warning(
            f"another producer uses the transactional id {name}: no task of this cluster"
            " uses it yet",
            "find its owner: pyconnect transactions describe " + name,
        )


@_check
def _aborted(view: View, wish: PhaseWish) -> Iterator[PlanFinding]:
    """A Java worker below `enabled` takes aborted offsets for valid ones."""
    enabled = [w for w in view.workers if Phase.ENABLED in w.phases and w.reachable]
    java = [worker.url for worker in enabled if worker.kind is Kind.JAVA]
    if not java or wish.target is Phase.ENABLED:
        return
    remedy = "isolation.level=read_committed at the top level of every Java worker's properties"
    if view.aborted_offsets:
        yield PlanFinding(
            f"{view.offsets_topic} ends with offsets of transactions that were not"
            f" committed ({'; '.join(view.aborted_offsets)}): {', '.join(java)} would skip"
            " records",
            f"{remedy}, restart them, then give --declared",
            blocks=not wish.declared,
        )
    elif view.offsets_topic is None:
        yield warning(
            "the workers' offsets topic is not known, so it was not searched for offsets of"
            " aborted transactions",
            f"name it in the inventory: offsets_topic; or set {remedy}",
        )


@_check
def _stopped(view: View, wish: PhaseWish) -> Iterator[PlanFinding]:
    """Workers before 3.5 take STOPPED for PAUSED."""
    if not view.stopped:
        return
    names = ", ".join(view.stopped)
    if wish.hard:
        yield PlanFinding(
            f"STOPPED: {names}; software before 3.5 treats them as PAUSED",
            "resume, pause or delete them first",
        )
    elif any(_older(worker, FIRST_WITH_STOPPED) for worker in view.workers):
        yield warning(f"STOPPED: {names}; a worker before 3.5 treats them as PAUSED")


@_check
def _means(view: View, wish: PhaseWish) -> Iterator[PlanFinding]:
    """Warn of restarts by hand, and of plugins that a restarted Java worker cannot run."""
    yield from (PlanFinding(message=text, blocks=False) for text in view.unusable_plugins)
    by_hand = [worker.url for worker in view.workers if worker.means is Means.OPERATOR]
    chosen = [url for url in by_hand if not wish.only or url in wish.only]
    if chosen:
        yield warning(
            f"restarts by hand, one worker at a time (exit 75 each time): {', '.join(chosen)}",
            "agents: agent.allow.phase.change=true; others: commands in an --inventory file",
        )
