"""`pyconnect acls`: the grants that a Connect cluster needs, has and lacks."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import typer

from pyconnect_cli.acls.gather import gather
from pyconnect_cli.acls.options import AclCheckVerb, AclVerb, GrantsVerb, acl_options
from pyconnect_cli.acls.plan.check import AclReport
from pyconnect_cli.acls.plan.grants import (
    Explanation,
    GrantSet,
    foreign_ids,
    kafka_acls,
    missing_grants,
    strimzi_users,
    terraform,
)
from pyconnect_cli.acls.plan.grants import explain as explain_text
from pyconnect_cli.errors import ExitCode, NotFound, PreconditionFailed, PyconnectError
from pyconnect_cli.render.outcomes import BatchRecord
from pyconnect_cli.render.styles import counted
from pyconnect_cli.render.tables import Column
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import argument, option
from pyconnect_clients.acls.model import (
    RULES,
    GrantFinding,
    GrantVerdict,
    NeedSeverity,
    ResourceType,
)

app = typer.Typer(help="Check, explain and generate the ACLs that connectors and workers need.")

EverythingOption = Annotated[bool, option("--all", "also the grants that exist already")]


@app.command(cls=AclCheckVerb)
def check(
    context: typer.Context,
    *,
    everything: EverythingOption = False,
    accept_unknown: Annotated[
        bool, option("--accept-unknown", "grants that cannot be checked count as given")
    ] = False,
) -> None:
    """Compare the grants that a phase needs with the grants that exist.

    The needs of earlier phases are included. Exit 0: ready. Exit 1: blockers are missing. Exit 5:
    blockers are unknown because listing the ACLs is denied. Exit 9: blockers are unknown.
    """
    session = session_of(context)
    report = gather(session, acl_options(session.given)).report()
    wanting = [*report.blockers, *(() if accept_unknown else report.undecided)]
    session.record = BatchRecord.of_checks(
        "check",
        {
            finding.need.text: finding.verdict.value if finding in wanting else None
            for finding in report.findings
        },
    )
    code = report.exit_code(accept_unknown=accept_unknown)
    if not session.output.silent(success=code is ExitCode.OK and not report.notes):
        # Print the findings that are not granted, or all; output for machines has all.
        output = session.output
        shown = [f for f in report.findings if everything or not f.verdict.granted]
        output.listing(
            COLUMNS,
            rows(shown),
            document=report.to_json(),
            entries=[finding.to_json() for finding in report.findings],
            names=[finding.need.text for finding in shown],
            empty=f"{report.phase.value}: all {len(report.findings)} grants are there",
        )
        for note in report.notes:
            output.warning(note)
        if shown and not output.machine:
            output.message(summary(report))
    if code is ExitCode.OK:
        return
    hints = {
        ExitCode.NEGATIVE: "print the grants to add: pyconnect acls generate --phase"
        f" {report.phase.value}",
        ExitCode.FORBIDDEN: "grant this command Describe on the cluster, or use --probe",
        ExitCode.PRECONDITION: "give --kafka-bootstrap and --principal, or --accept-unknown",
    }
    what = {
        ExitCode.NEGATIVE: f"missing: {counted(len(report.blockers), 'blocker')}",
        ExitCode.FORBIDDEN: f"listing the ACLs is denied; unknown:"
        f" {counted(len(report.undecided), 'blocker')}",
        ExitCode.PRECONDITION: f"undecided: {counted(len(report.undecided), 'blocker')}",
    }
    raise PyconnectError(
        f"not ready for {report.phase.value}: {what[code]}", hint=hints[code], exit_code=code
    )


@app.command(cls=AclVerb)
def explain(
    context: typer.Context,
    text: Annotated[list[str], argument("TEXT", "topic, group, transactional id or error text")],
) -> None:
    """Show the grants that concern a topic, group, transactional id or error text.

    The meaning of an error text is shown even if no worker's configuration is known.
    """
    session = session_of(context)
    found = explain_text(" ".join(text))
    try:
        report = gather(session, acl_options(session.given)).report()
    except PyconnectError as error:
        if not found.rules and found.denial is None:
            raise
        session.output.warning(f"only the meaning of the text can be shown: {error.message}")
        _tell_rules(session, found)
        return
    selected = found.select(report.findings)
    if not selected and found.rules:
        session.output.warning(
            f"this cluster needs no such grant for {report.phase.value}; meaning of the text:"
        )
        _tell_rules(session, found)
        return
    if not selected:
        raise NotFound(
            f"this cluster needs no such grant: {found.denial or ' '.join(text)}",
            hint="show all grants: pyconnect acls check --all",
        )
    session.output.listing(
        COLUMNS, rows(selected), document=[finding.to_json() for finding in selected]
    )


def _tell_rules(session: Session, found: Explanation) -> None:
    if found.denial is not None:
        session.output.line(f"{found.denial}: the brokers refused it")
    for rule in map(RULES.__getitem__, found.rules):
        session.output.line(
            f"{rule.id}: {rule.role.value} needs {rule.operation.value} to {rule.why};"
            f" without it: {rule.symptom}"
        )


@app.command(cls=GrantsVerb)
def generate(
    context: typer.Context,
    *,
    everything: EverythingOption = False,
    remove: Annotated[
        bool, option("--remove", "commands that revoke the grants (kafka-acls)")
    ] = False,
    explicit_describe: Annotated[
        bool,
        option(
            "--explicit-describe",
            "explicit grants for authorizers without Kafka's implied operations",
        ),
    ] = False,
    prefixed: Annotated[
        bool, option("--prefixed", "one prefixed grant for the transactional ids of a connector")
    ] = False,
    strimzi_cluster: Annotated[
        str, option("--strimzi-cluster NAME", "value of the cluster label of the KafkaUsers")
    ] = "my-cluster",
) -> None:
    """Print the smallest set of missing grants; nothing is applied.

    Grants have literal names and never `All`. A DENY that stands against a grant is reported, never
    removed. -o kafka-acls (default), strimzi or terraform chooses the form; -o json prints the
    grants themselves.
    """
    session = session_of(context)
    gathered = gather(session, acl_options(session.given))
    report = gathered.report()
    group = gathered.facts.workers[0].group_id
    prefixes = {
        connector.name: f"{group}-{connector.name}-"
        for connector in gathered.facts.connectors
        if prefixed and connector.type != "sink"
    }
    for name, prefix in prefixes.items():
        foreign = foreign_ids(prefix, name, report.findings)
        if foreign and not session.settings.yes:
            raise PreconditionFailed(
                f"a prefixed grant on {prefix} would cover {', '.join(foreign[:3])} too",
                hint="leave out --prefixed, or accept this with --yes",
            )
    found = missing_grants(
        report.findings,
        everything=everything or remove,  # only existing grants can be revoked
        explicit_describe=explicit_describe,
        prefixes=prefixes,
    )
    _print_grants(session, found, remove=remove, strimzi_cluster=strimzi_cluster)
    output = session.output
    for conflict in found.conflicts:
        output.warning(f"{conflict.need.text} stays denied: {conflict.evidence}")
    for need in found.unnamed:
        output.warning(f"{need.owner}: {need.text} for a principal that is not known")
    for note in report.notes:
        output.warning(note)
    output.message(summary(report))


def _print_grants(session: Session, found: GrantSet, *, remove: bool, strimzi_cluster: str) -> None:
    output = session.output
    match output.style.format:
        case "strimzi":
            from pyconnect_cli.render.output import to_yaml

            users = strimzi_users(found.grants, strimzi_cluster)
            output.line("---\n".join(to_yaml(user) for user in users).rstrip("\n"))
        case "terraform":
            output.line("\n\n".join(terraform(found.grants)))
        case "json" | "yaml" | "ndjson" | "name":
            output.document(found.to_json())
        case _:
            bootstrap = session.settings.kafka_bootstrap or "BROKERS"
            for command in kafka_acls(found.grants, bootstrap, remove=remove):
                output.line(command)


_STYLES = {
    GrantVerdict.PROVEN.value: "good",
    GrantVerdict.PREDICTED.value: "good",
    GrantVerdict.DENIED.value: "bad",
    GrantVerdict.MISSING.value: "bad",
    GrantVerdict.UNKNOWN.value: "warning",
}


class GrantRow(NamedTuple):
    """Findings that differ only in the number of a task."""

    findings: tuple[GrantFinding, ...]

    @property
    def first(self) -> GrantFinding:
        """The finding that represents the others."""
        return self.findings[0]

    @property
    def need(self) -> str:
        """The first finding's need, with the last finding's name and the number of findings."""
        text = self.first.need.text
        if len(self.findings) == 1:
            return text
        return f"{text} … {self.findings[-1].need.resource.name} ({len(self.findings)})"


COLUMNS: Sequence[Column[GrantRow]] = (
    Column("OWNER", lambda row: row.first.need.owner),
    Column("CLIENT", lambda row: row.first.need.rule.role.value),
    Column("PRINCIPAL", lambda row: row.first.need.principal or "?", whole=True),
    Column("RULE", lambda row: row.first.need.rule.id, wide=True),
    Column("NEED", lambda row: row.need, prose=True),
    Column("SINCE", lambda row: row.first.need.phase.value, wide=True),
    Column("LEVEL", lambda row: row.first.need.severity.value),
    Column("HAVE", lambda row: row.first.verdict.value, style=_STYLES.get),
    Column("EVIDENCE", lambda row: row.first.evidence, wide=True, prose=True),
    Column("WHY", lambda row: row.first.need.rule.why, wide=True, prose=True),
    Column("SYMPTOM", lambda row: row.first.need.rule.symptom, prose=True),
)


def rows(findings: Sequence[GrantFinding]) -> list[GrantRow]:
    """Return rows: task ids with the same verdict together, blockers that are not granted first."""
    together: dict[tuple[object, ...], list[GrantFinding]] = {}
    for finding in findings:
        need = finding.need
        name = need.resource.name
        if need.resource.type is ResourceType.TRANSACTIONAL_ID:
            name = name.rpartition("-")[0]
        alike = (need.rule.id, need.owner, need.principal, name, need.severity, finding.verdict)
        together.setdefault(alike, []).append(finding)
    listed = [GrantRow(tuple(found)) for found in together.values()]
    return sorted(
        listed,
        key=lambda row: (
            row.first.verdict.granted,
            row.first.need.severity is NeedSeverity.WARNING,
            not row.first.verdict.lacking,
        ),
    )


def summary(report: AclReport) -> str:
    """Return one line with the number of grants, missing ones and unknown ones."""
    count = len(report.findings)
    lacking = sum(finding.verdict.lacking for finding in report.findings)
    unknown = sum(finding.verdict is GrantVerdict.UNKNOWN for finding in report.findings)
    return (
        f"{report.phase.value}: {counted(count, 'grant')} needed, {lacking} missing"
        f" ({len(report.blockers)} of them blockers), {unknown} unknown"
        f" ({len(report.undecided)} of them blockers)"
    )
