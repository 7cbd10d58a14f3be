"""Runs a resolved spec: Spark's process, progress on the terminal, the summary, the exit code."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from pyconnect_cli.audits.audited import Document
from pyconnect_cli.audits.spec import complete, report_directory
from pyconnect_cli.errors import ExitCode, PyconnectError, Undecided
from pyconnect_cli.render.outcomes import BatchRecord, ObjectResult, Outcome
from pyconnect_cli.session import Session

Secrets: TypeAlias = Mapping[str, Mapping[str, str]]
"""Properties of sides by the member of the spec, for files that the sides name."""


def reconcile(
    session: Session, job: str, target: str, resolved: Document, secrets: Secrets | None = None
) -> None:
    """Run a job to its report; raise with the exit code unless both sides agree."""
    document = complete(session, job, target, resolved)
    if session.given.get("print_spec"):
        session.output.document(document)
        return
    directory = report_directory(session, job, target, datetime.now(UTC))
    name = target or job
    session.record = BatchRecord(job, [name])
    try:
        with tempfile.TemporaryDirectory(prefix="pyconnect-reconcile-") as work:
            # A spec file may have replaced a side, which then names its own files.
            kept = {n: s for n, s in (secrets or {}).items() if document[n] is resolved[n]}
            exit_code = _run(session, document, kept, directory, Path(work))
    except PyconnectError as error:
        failed = ObjectResult(name=name, action=job, outcome=Outcome.FAILED, error=error)
        session.record = BatchRecord.of([failed])
        raise
    report = json.loads((directory / "report.json").read_text("utf-8"))
    if not session.output.style.quiet:
        _show(session, report, directory)
    result = ObjectResult(
        name=name,
        action=job,
        outcome=Outcome.DONE if exit_code == 0 else Outcome.FAILED,
        more={"verdict": report["verdict"], "report": str(directory)},
    )
    session.record = BatchRecord.of([result])
    if exit_code != 0:
        raise PyconnectError("", exit_code=exit_code)


def _run(
    session: Session, document: Document, secrets: Secrets, directory: Path, work: Path
) -> int:
    from pyconnect_cli.audits.process import EventCalls, run_process
    from pyconnect_cli.render.step_line import StepLine

    spec, log = work / "spec.json", work / "spark.log"
    with StepLine(session.output) as line:
        if document["job"] != "ranges":
            _prepare_spark(document, line, session.environ)
        _name_secrets(document, secrets, work)
        _write_private(spec, json.dumps(document))

        def progress(done: int, total: int) -> None:
            line.count("Spark tasks", done, total)

        ended = run_process(
            spec, directory, log, EventCalls(step=line, progress=progress), session.environ
        )
    if directory.is_dir():
        shutil.copyfile(log, directory / "spark.log")
    verdicts = {ExitCode.OK, ExitCode.NEGATIVE, ExitCode.UNDECIDED}
    if (directory / "report.json").is_file() and ended.exit_code in verdicts and not ended.error:
        return ended.exit_code
    # Without a report an exit status of 1 is Python's for any exception, not a difference.
    refused = ended.exit_code == ExitCode.USAGE and ended.error is not None
    raise Undecided(
        ended.without_answer,
        hint=ended.hint,
        exit_code=ended.exit_code if refused or ended.exit_code == ExitCode.INTERRUPTED else None,
    )


def _name_secrets(document: Document, secrets: Secrets, work: Path) -> None:
    """Write the secrets of sides to files, unless the user has named a file of a side."""
    import javaproperties

    for name, properties in secrets.items():
        side = document[name]
        assert isinstance(side, dict)
        if properties and "properties" not in side:
            file = work / f"{name}.properties"
            _write_private(file, javaproperties.dumps(dict(properties), timestamp=False))
            side["properties"] = str(file)


def _write_private(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)


def _prepare_spark(document: Document, progress: object, environ: Mapping[str, str]) -> None:
    """Require Spark and Java, and name the jars that Spark lacks unless the user did."""
    from pyconnect_cli.audits.avro import uses_avro
    from pyconnect_cli.audits.spark_jars import (
        avro_jars,
        iceberg_jars,
        jdbc_jars,
        kafka_source_jars,
        require_spark,
    )

    assert callable(progress)
    require_spark()
    spark = document["spark"]
    assert isinstance(spark, dict)
    if spark.get("remote") or (environ.get("SPARK_REMOTE") and not spark.get("master")):
        # The server has its own Java and jars.
        return
    own = [str(name) for name in (*spark.get("jars", ()), *spark.get("packages", ()))]
    jars: list[Path] = []
    if not any("spark-sql-kafka" in name for name in own):
        jars += kafka_source_jars(progress=progress)
    if uses_avro(document) and not any("spark-avro" in name for name in own):
        jars += avro_jars(progress=progress)
    if _reads_iceberg(document) and not any("iceberg-spark-runtime" in name for name in own):
        jars += iceberg_jars(progress=progress)
    for url in sorted(_jdbc_urls(document)):
        drivers = jdbc_jars(url, progress=progress)
        names = [name.name.rpartition("-")[0] for name in drivers]
        if not any(name in given for name in names for given in own):
            jars += drivers
    spark["jars"] = [*spark.get("jars", ()), *map(str, jars)]


def _sides(document: Document) -> list[Document]:
    named = (document.get("left"), document.get("right"))
    return [side for side in named if isinstance(side, dict)]


def _reads_iceberg(document: Document) -> bool:
    return any(side.get("format") == "iceberg" for side in _sides(document))


def _jdbc_urls(document: Document) -> set[str]:
    """Return the addresses of tables, and of catalogs that are databases."""
    found = set()
    for side in _sides(document):
        catalog = side.get("catalog")
        if side.get("kind") == "table":
            found.add(str(side["url"]))
        elif isinstance(catalog, dict) and catalog.get("kind") == "sql":
            found.add(str(catalog["url"]))
    return found


def _show(session: Session, report: Mapping[str, object], directory: Path) -> None:
    output = session.output
    if output.drawn:
        from pyconnect_cli.audits.panel import drawn

        text = drawn(report, directory, width=output.style.width or 80)
    else:
        from pyconnect_cli.audits.summary import summary

        text = summary(report, directory, output.paint)
    output.document({**report, "report": str(directory)}, text=text)
