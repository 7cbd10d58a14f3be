"""The display of findings about ACLs: ids of one connector's tasks in one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyconnect_cli.acls.plan.check import AclReport
from pyconnect_cli.render.output import Output
from pyconnect_cli.render.styles import counted
from pyconnect_cli.render.tables import Column
from pyconnect_clients.acls.model import GrantFinding, GrantVerdict, NeedSeverity
from pyconnect_clients.acls.words import ResourceType

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
        """The first and the last of the names."""
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
    Column(
        "HAVE",
        lambda row: row.first.verdict.value,
        style=_STYLES.get,
    ),
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
    return sorted(listed, key=_urgency)


def show_report(output: Output, report: AclReport, *, everything: bool) -> None:
    """Print the findings that are not granted, or all; output for machines has all."""
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


def _urgency(row: GrantRow) -> tuple[bool, bool, bool]:
    finding = row.first
    mild = finding.need.severity is NeedSeverity.WARNING
    return finding.verdict.granted, mild, not finding.verdict.lacking
