"""Runs a resolved spec: Spark's process, progress on the terminal, the summary, the exit code."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pyconnect_cli.acting.unattended import held_lock
from pyconnect_cli.errors import ExitCode, OutputLost, PyconnectError, Undecided
from pyconnect_cli.reconcile.connectors import Document
from pyconnect_cli.reconcile.spec import complete, report_directories
from pyconnect_cli.render.outcomes import BatchRecord, ObjectResult, Outcome
from pyconnect_cli.render.output import key_value_lines
from pyconnect_cli.render.styles import printable
from pyconnect_cli.session import Session

if TYPE_CHECKING:
    from pyconnect_cli.reconcile.process import ProcessEnd


SHOWN = 12
VERDICT_STYLES = {"agree": "good", "differ": "bad", "unknown": "warning"}
SEVERITY_STYLES = {"error": "bad", "unknown": "warning", "note": None}
Paint = Callable[[str, str | None], str]


def summary(report: Mapping[str, Any], directory: Path, paint: Paint) -> str:
    from pyconnect_reconcile.findings import of_every_kind

    verdict = str(report["verdict"])
    head = printable(f"{report['job']} {report['target']}".rstrip())
    took = f"{int(report['duration_ms']) / 1000:.1f} s"
    lines = [f"{head}: {paint(verdict, VERDICT_STYLES[verdict])} ({took})"]
    counts = {name.replace("_", " "): f"{value:,}" for name, value in report["counts"].items()}
    lines += key_value_lines(counts, indent="  ")
    if names := "; ".join(map(str, report.get("not_compared", ()))):
        lines += ["", f"  not compared: {names}"]
    findings: Sequence[Mapping[str, Any]] = report["findings"]
    if findings:
        lines.append("")
        shown = of_every_kind([finding["kind"] for finding in findings], SHOWN)
        lines += [_line(findings[index], paint) for index in shown]
        if (more := int(report["findings_kept"]) - SHOWN) > 0:
            lines.append(f"  and {more:,} more in findings/findings.ndjson")
    lines += ["", f"report: {directory / 'report.html'}"]
    return "\n".join(lines)


def _line(finding: Mapping[str, Any], paint: Paint) -> str:
    label = paint(str(finding["kind"]), SEVERITY_STYLES[str(finding["severity"])])
    key = f" (key {finding['key']})" if finding.get("key") else ""
    interval = ""
    if finding.get("of") == "offsets":
        partition = f"{finding['topic']}:{finding['partition']}"
        interval = f"{partition} {finding['first']}..{finding['last']}: "
    places = [
        f"{copy['file']}:{copy['row']}"
        if "file" in copy
        else f"{copy['table']}:{copy['key']}"
        if "table" in copy
        else f"{copy['topic']}:{copy['partition']}@{copy['offset']}"
        for copy in finding.get("copies", ())[:4]
    ]
    at = f" at {printable(', '.join(places))}" if places else ""
    return f"  {label} {printable(interval + finding['message'] + key)}{at}"


VERDICTS = {"agree": ExitCode.OK, "differ": ExitCode.NEGATIVE, "unknown": ExitCode.UNDECIDED}
Secrets: TypeAlias = Mapping[str, Mapping[str, str]]
"""Properties of sides by the member of the spec, for files that the sides name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """One run: what it is about, the members of its spec, and the secrets of its sides."""

    target: str
    resolved: Document
    secrets: Secrets = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A run with its whole spec; `name` is that of the object in the summary."""

    name: str
    document: Document
    secrets: Secrets
    directory: Path


def reconcile(session: Session, job: str, target: str, resolved: Document) -> None:
    """Run a job to its report; raise with the exit code unless both sides agree."""
    reconcile_each(session, job, [Audit(target=target, resolved=resolved)])


def reconcile_each(session: Session, job: str, audits: Sequence[Audit]) -> None:
    """Run a job for each target in one session of Spark, each to a report of its own.

    Raises with exit code 1 when any target differs, otherwise with that of the first that has no
    answer. One that cannot decide does not stop the others.
    """
    documents = [complete(session, job, audit.target, audit.resolved) for audit in audits]
    if session.given.get("print_spec"):
        session.output.document(documents[0] if len(documents) == 1 else documents)
        return
    targets = [audit.target for audit in audits]
    directories = report_directories(session, job, targets, datetime.now(UTC))
    runs = [
        _Run(
            name=audit.target or job,
            document=document,
            # A spec file may have replaced a side, which then names its own files.
            secrets={
                name: properties
                for name, properties in audit.secrets.items()
                if document[name] is audit.resolved[name]
            },
            directory=directory,
        )
        for audit, document, directory in zip(audits, documents, directories, strict=True)
    ]
    session.record = BatchRecord(job, [run.name for run in runs])
    try:
        with ExitStack() as stack:
            if session.given.get("since_last"):
                # Two runs that continue the same report would be two chains.
                for target in dict.fromkeys(targets):
                    name = hashlib.sha256(target.encode()).hexdigest()[:16]
                    stack.enter_context(held_lock(session, f"since-last-{job}-{name}"))
            work = stack.enter_context(tempfile.TemporaryDirectory(prefix="pyconnect-reconcile-"))
            ended = _run(session, runs, Path(work))
    except PyconnectError as error:
        session.record = BatchRecord.of([_failed(run, job, error) for run in runs])
        raise
    answers = [_answer(run, ended) for run in runs]
    reports = [answer for answer in answers if not isinstance(answer, PyconnectError)]
    if reports and not session.output.style.quiet:
        show(session, reports, alone=len(runs) == 1)
    results = [
        _failed(run, job, answer)
        if isinstance(answer, PyconnectError)
        else ObjectResult(
            name=run.name,
            action=job,
            outcome=Outcome.DONE if answer["verdict"] == "agree" else Outcome.FAILED,
            more={"verdict": answer["verdict"], "report": answer["report"]},
        )
        for run, answer in zip(runs, answers, strict=True)
    ]
    session.record = BatchRecord.of(results)
    _raise_failures(session, runs, answers)


def show(session: Session, reports: Sequence[Mapping[str, Any]], *, alone: bool) -> None:
    """Print the summaries of reports, or the reports themselves as JSON: one, or a list."""
    document: object = reports[0] if alone else list(reports)
    texts = (summary(report, Path(report["report"]), session.output.paint) for report in reports)
    session.output.document(document, text="\n\n".join(texts))


Answer: TypeAlias = Mapping[str, Any] | PyconnectError
"""The report of a run with its directory as `report`, or why there is none."""


def _answer(run: _Run, ended: ProcessEnd) -> Answer:
    file, refusal = run.directory / "report.json", ended.refusal(run.directory)
    if file.is_file() and str(run.directory) not in ended.refusals:
        return {**json.loads(file.read_text("utf-8")), "report": str(run.directory)}
    # Without a report an exit status of 1 is Python's for any exception, not a difference.
    refused = ended.exit_code == ExitCode.USAGE and refusal is not None
    return Undecided(
        refusal.message if refusal else ended.without_answer,
        hint=refusal.hint if refusal else None,
        exit_code=ended.exit_code if refused or ended.exit_code == ExitCode.INTERRUPTED else None,
    )


def _failed(run: _Run, job: str, error: PyconnectError) -> ObjectResult:
    return ObjectResult(name=run.name, action=job, outcome=Outcome.FAILED, error=error)


def _raise_failures(session: Session, runs: Sequence[_Run], answers: Sequence[Answer]) -> None:
    """Raise the only error, or one with the exit code of all; several errors are printed first."""
    errors = [answer for answer in answers if isinstance(answer, PyconnectError)]
    if len(answers) == 1 and errors:
        raise errors[0]
    for run, answer in zip(runs, answers, strict=True):
        if isinstance(answer, PyconnectError):
            hint = f" (hint: {answer.hint})" if answer.hint else ""
            session.output.warning(f"{run.name} was not audited: {answer.message}{hint}")
    codes = [
        answer.exit_code if isinstance(answer, PyconnectError) else VERDICTS[answer["verdict"]]
        for answer in answers
    ]
    failures = [code for code in codes if code != ExitCode.OK]
    if failures:
        code = ExitCode.NEGATIVE if ExitCode.NEGATIVE in failures else failures[0]
        raise PyconnectError("", exit_code=code)


def _run(session: Session, runs: Sequence[_Run], work: Path) -> ProcessEnd:
    from pyconnect_cli.reconcile.process import EventCalls, run_process
    from pyconnect_cli.render.step_line import StepLine

    log, specs, environ = work / "spark.log", {}, session.environ
    with StepLine(session.output) as line:
        documents = [run.document for run in runs]
        if documents[0]["job"] != "ranges":
            environ = _prepare_spark(documents, line, environ)
        for number, run in enumerate(runs):
            place = work / str(number)
            place.mkdir()
            name_secrets(run.document, run.secrets, place)
            write_private(place / "spec.json", json.dumps(run.document))
            specs[place / "spec.json"] = run.directory

        def progress(done: int, total: int) -> None:
            line.count("Spark tasks", done, total)

        ended = run_process(specs, log, EventCalls(step=line, progress=progress), environ)
    for directory in specs.values():
        if directory.is_dir():
            shutil.copyfile(log, directory / "spark.log")
    return ended


def name_secrets(document: Document, secrets: Secrets, work: Path) -> None:
    """Write the secrets of sides to files, unless the user has named a file of a side."""
    import javaproperties

    for name, properties in secrets.items():
        side = document[name]
        assert isinstance(side, dict)
        if properties and "properties" not in side:
            file = work / f"{name}.properties"
            write_private(file, javaproperties.dumps(dict(properties), timestamp=False))
            side["properties"] = str(file)


def write_private(file: Path, text: str) -> None:
    """Write a new file that only its owner may read; OutputLost when it cannot be written."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as exc:
        raise OutputLost(f"{file}: cannot be written: {exc.strerror}") from exc


def _prepare_spark(
    documents: Sequence[Document], progress: object, environ: Mapping[str, str]
) -> Mapping[str, str]:
    """Require Spark and Java, and name the jars that Spark lacks unless the user did.

    All specs name the same jars, because they share a session. Returns the environment of the
    process, in which Spark maps the archive of its classes.
    """
    from pyconnect_cli.reconcile.spark_jars import (
        SparkArchive,
        avro_jars,
        iceberg_jars,
        jdbc_jars,
        kafka_source_jars,
        require_java,
        require_spark,
    )

    assert callable(progress)
    require_spark()
    archive = SparkArchive(require_java(environ), environ)
    spark = documents[0]["spark"]
    assert isinstance(spark, dict)
    if spark.get("remote") or (environ.get("SPARK_REMOTE") and not spark.get("master")):
        # The server has its own Java and jars.
        return environ
    own = [str(name) for name in (*spark.get("jars", ()), *spark.get("packages", ()))]
    jars: list[Path] = []
    if not any("spark-sql-kafka" in name for name in own):
        jars += kafka_source_jars(progress=progress)
    if any(map(uses_avro, documents)) and not any("spark-avro" in name for name in own):
        jars += avro_jars(progress=progress)
    named = [document.get(name) for document in documents for name in ("left", "right")]
    sides = [side for side in named if isinstance(side, dict)]
    if any(side.get("format") == "iceberg" for side in sides) and not any(
        "iceberg-spark-runtime" in name for name in own
    ):
        jars += iceberg_jars(progress=progress)
    # Of tables, and of catalogs that are databases.
    catalogs = [each for side in sides if isinstance(each := side.get("catalog"), dict)]
    urls = {str(side["url"]) for side in sides if side.get("kind") == "table"}
    urls |= {str(catalog["url"]) for catalog in catalogs if catalog.get("kind") == "sql"}
    for url in sorted(urls):
        drivers = jdbc_jars(url, progress=progress)
        names = [name.name.rpartition("-")[0] for name in drivers]
        if not any(name in given for name in names for given in own):
            jars += drivers
    every = [*spark.get("jars", ()), *dict.fromkeys(map(str, jars))]
    for document in documents:
        document["spark"] = {**spark, "jars": every}
    archive.make_when_worth_it(progress)
    return archive.environment()


SIDES = ("left", "right", "arrived")
EXTRACTIONS = ("sequence", "group", "identity", "key")
AVRO = "avro"


def uses_avro(document: Mapping[str, object]) -> bool:
    """Return whether a spec names files or values in Avro, or members of such values."""
    tiers = document.get("tiers")
    known = [
        each for each in (tiers if isinstance(tiers, list) else ()) if isinstance(each, Mapping)
    ]
    sides = [*(document.get(name) for name in SIDES), *(tier.get("side") for tier in known)]
    texts = [document.get(name) for name in EXTRACTIONS]
    texts += [tier.get("event_time") for tier in known]
    for side in sides:
        if isinstance(side, Mapping):
            texts += [side.get("value"), side.get("format")]
    return any(text == AVRO or text.startswith(f"{AVRO}:") for text in map(str, texts))
