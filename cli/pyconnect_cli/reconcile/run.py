"""Runs a resolved spec: Spark's process, progress on the terminal, the summary, the exit code.

The process reads its stdin, which closes when this one ends: then it ends itself and Spark's JVM.
The output of the JVM goes to spark.log beside the report.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from pyconnect_cli.acting.unattended import held_lock
from pyconnect_cli.errors import ExitCode, OutputLost, PyconnectError, Undecided
from pyconnect_cli.reconcile.connectors import Document
from pyconnect_cli.reconcile.spec import complete, report_directories
from pyconnect_cli.render.outcomes import BatchRecord, ObjectResult, Outcome
from pyconnect_cli.render.output import key_value_lines
from pyconnect_cli.render.styles import printable
from pyconnect_cli.session import Session

ENDING_S = 20.0
TAIL_LINES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkRefusal:
    """The reason why a run has no answer, as the process reported it."""

    message: str
    hint: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEnd:
    """The end of the process; `refusals` by the report's directory, None: of every run.

    `log` holds the last lines of Spark's log.
    """

    exit_code: int
    refusals: Mapping[str | None, SparkRefusal]
    log: str = ""

    def refusal(self, report: Path) -> SparkRefusal | None:
        """Return why the run of this report's directory has no answer, if it was reported."""
        return self.refusals.get(str(report)) or self.refusals.get(None)

    @property
    def without_answer(self) -> str:
        """The message about a process that left no report and no reason."""
        ended = f"ended with exit status {self.exit_code}"
        if self.exit_code < 0:
            ended = f"was killed by signal {-self.exit_code}"
        said = f"; the last lines of spark.log: {self.log}" if self.log else "; spark.log is empty"
        return f"the Spark process {ended} without a report{said}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCalls:
    """Functions for events: a step's text, the numbers of done and all tasks, a snapshot's id."""

    step: Callable[[str], None]
    progress: Callable[[int, int], None]
    committed: Callable[[int], None] = lambda _: None


def run_process(
    runs: Mapping[Path, Path], log: Path, told: EventCalls, environment: Mapping[str, str]
) -> ProcessEnd:
    """Run specs (report directory by spec file) in a process of their own and wait for it.

    KeyboardInterrupt and every other exception end the process first: it cancels Spark's jobs.
    """
    reports = (part for report in runs.values() for part in ("--report", str(report)))
    command = ("pyconnect_reconcile", *map(str, runs), *reports, "--events", "--tethered")
    return run_module(command, log, told, environment)


def run_module(
    module: Sequence[str],
    log: Path,
    told: EventCalls,
    environment: Mapping[str, str],
    *,
    silent_s: float | None = None,
) -> ProcessEnd:
    """Run a module with its arguments in a process of its own; `log` gets its other output.

    It is killed when it reports nothing for `silent_s`.
    """
    with log.open("wb") as stderr:
        # A separate process group: Ctrl-C reaches the child once, from this process.
        process = subprocess.Popen(
            (sys.executable, "-m", *module),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=dict(environment),
            start_new_session=True,
        )
    try:
        refusals = _relay(process, told, silent_s)
        code = process.wait()
    except BaseException:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        try:
            process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            _kill_group(process)
        raise
    finally:
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    tail = " / ".join(line.strip() for line in lines[-TAIL_LINES:])
    return ProcessEnd(exit_code=code, refusals=refusals, log=tail)


def _relay(
    process: subprocess.Popen[str], told: EventCalls, silent_s: float | None
) -> dict[str | None, SparkRefusal]:
    """Relay events until the process closes its output; kill it when it is silent for so long."""
    assert process.stdout is not None
    refusals: dict[str | None, SparkRefusal] = {}
    while True:
        watch = threading.Timer(silent_s or 0.0, _kill_group, (process,))
        if silent_s is not None:
            watch.start()
        try:
            line = process.stdout.readline()
        finally:
            watch.cancel()
        if not line:
            return refusals
        try:
            event = json.loads(line)
        except ValueError:
            # Output of the JVM or a library on stdout.
            continue
        match event.get("event"):
            case "step":
                told.step(event["text"])
            case "progress":
                told.progress(event["done"], event["total"])
            case "committed":
                told.committed(event["snapshot"])
            case "error":
                refusal = SparkRefusal(message=event["message"], hint=event["hint"])
                refusals[event["directory"]] = refusal


def _kill_group(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


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
        for finding in map(findings.__getitem__, shown):
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
            lines.append(f"  {label} {printable(interval + finding['message'] + key)}{at}")
        if (more := int(report["findings_kept"]) - SHOWN) > 0:
            lines.append(f"  and {more:,} more in findings/findings.ndjson")
    lines += ["", f"report: {directory / 'report.html'}"]
    return "\n".join(lines)


VERDICTS = {"agree": ExitCode.OK, "differ": ExitCode.NEGATIVE, "unknown": ExitCode.UNDECIDED}
Secrets: TypeAlias = Mapping[str, Mapping[str, str]]
"""The properties of each side, by the side's member of the spec; the side names their file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """One run: its target, the members of its spec, and the secrets of its sides."""

    target: str
    resolved: Document
    secrets: Secrets = field(default_factory=dict)


Answer: TypeAlias = Mapping[str, Any] | PyconnectError
"""The report of a run with its directory as `report`, or the error that explains its absence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A run with its whole spec; `name` is its object's name in the summary."""

    name: str
    job: str
    document: Document
    secrets: Secrets
    directory: Path

    def answer(self, ended: ProcessEnd) -> Answer:
        """Return the report, or the error that explains why there is none."""
        file, refusal = self.directory / "report.json", ended.refusal(self.directory)
        if file.is_file() and str(self.directory) not in ended.refusals:
            return {**json.loads(file.read_text("utf-8")), "report": str(self.directory)}
        # Without a report an exit status of 1 is Python's for any exception, not a difference.
        refused = ended.exit_code == ExitCode.USAGE and refusal is not None
        known = refused or ended.exit_code == ExitCode.INTERRUPTED
        return Undecided(
            refusal.message if refusal else ended.without_answer,
            hint=refusal.hint if refusal else None,
            exit_code=ended.exit_code if known else None,
        )

    def result(self, answer: Answer) -> ObjectResult:
        """Return the outcome for the summary."""
        if isinstance(answer, PyconnectError):
            return ObjectResult(
                name=self.name, action=self.job, outcome=Outcome.FAILED, error=answer
            )
        return ObjectResult(
            name=self.name,
            action=self.job,
            outcome=Outcome.DONE if answer["verdict"] == "agree" else Outcome.FAILED,
            more={"verdict": answer["verdict"], "report": answer["report"]},
        )


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
            job=job,
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
                # Two runs after the same report would make two chains of reports.
                for target in dict.fromkeys(targets):
                    name = hashlib.sha256(target.encode()).hexdigest()[:16]
                    stack.enter_context(held_lock(session, f"since-last-{job}-{name}"))
            work = stack.enter_context(tempfile.TemporaryDirectory(prefix="pyconnect-reconcile-"))
            ended = _run(session, runs, Path(work))
    except PyconnectError as error:
        session.record = BatchRecord.of([run.result(error) for run in runs])
        raise
    answers = [run.answer(ended) for run in runs]
    reports = [answer for answer in answers if not isinstance(answer, PyconnectError)]
    if reports and not session.output.style.quiet:
        show(session, reports, alone=len(runs) == 1)
    results = [run.result(answer) for run, answer in zip(runs, answers, strict=True)]
    session.record = BatchRecord.of(results)
    _raise_failures(session, runs, answers)


def show(session: Session, reports: Sequence[Mapping[str, Any]], *, alone: bool) -> None:
    """Print the summaries of reports, or the reports themselves as JSON: one, or a list."""
    document: object = reports[0] if alone else list(reports)
    texts = (summary(report, Path(report["report"]), session.output.paint) for report in reports)
    session.output.document(document, text="\n\n".join(texts))


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
    # Drivers are needed for tables, and for catalogs that are databases.
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
