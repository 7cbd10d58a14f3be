"""The spec of a job, made from options, contexts and files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from pyconnect_cli.directories import state_directory
from pyconnect_cli.errors import PreconditionFailed, UsageError
from pyconnect_cli.parsing.values import parse_moment
from pyconnect_cli.reconcile.audited import Document
from pyconnect_cli.session import Session

MAIN = "main"


def complete(session: Session, job: str, target: str, resolved: Document) -> Document:
    """Return the whole spec: resolved members, replaced by the spec file, then by flags."""
    given = session.given
    document: Document = {"version": 1, "job": job, "target": target, **resolved}
    if path := given.get("spec"):
        document |= _spec_file(Path(str(path)), job)
    if ranges := given.get("ranges"):
        document["ranges"] = str(Path(str(ranges)).absolute())
    if since := given.get("since"):
        document["since_ms"] = parse_moment(str(since), what="--since", now=datetime.now(UTC))
    if given.get("since_last"):
        document["since_last"] = True
        document["earlier"] = [str(path) for path in earlier_reports(session, job, target)]
    if findings := given.get("findings"):
        document["findings"] = _number(str(findings))
    for name in ("hide_keys", "fail_unparsable", "stable_only"):
        if given.get(name):
            document[name] = True
    if registries := _registries(document.get("registries"), given):
        document["registries"] = registries
    clusters = document.setdefault("clusters", {})
    assert isinstance(clusters, dict)
    clusters.setdefault(MAIN, cluster_of(session))
    document["spark"] = _spark(document.get("spark"), given)
    return document


def cluster_of(session: Session) -> Document:
    """Return the Kafka cluster of the settings in force."""
    settings = session.settings
    if not settings.kafka_bootstrap:
        raise PreconditionFailed(
            "reconciliation reads Kafka itself, and no brokers are known",
            hint="give --kafka-bootstrap HOST:PORT, PYCONNECT_KAFKA_BOOTSTRAP, or"
            " kafka.bootstrap in the context",
        )
    cluster: Document = {"bootstrap": settings.kafka_bootstrap}
    if settings.kafka_properties:
        # The spec names the file and does not hold its content: secrets stay in the file.
        cluster["properties"] = str(Path(settings.kafka_properties).expanduser().absolute())
    return cluster


def _reports(environ: Mapping[str, str]) -> Path:
    return state_directory(environ) / "reconcile"


def report_directories(
    session: Session, job: str, targets: Sequence[str], now: datetime
) -> list[Path]:
    """Return the directories of reports: below the one given, else new ones in the state directory.

    A single report has the given directory itself.
    """
    if given := session.given.get("report"):
        directory = Path(str(given)).expanduser().absolute()
        if len(targets) == 1:
            return [directory]
        return [directory / f"{job}-{quote(target, safe='')}" for target in targets]
    stamp = f"{now:%Y%m%dT%H%M%S}-{os.getpid()}"
    # Targets that differ may have the same stem.
    return [
        _reports(session.environ)
        / (f"{stem_of(job, target)}-{stamp}" + (f"-{number}" if number else ""))
        for number, target in enumerate(targets)
    ]


def stem_of(job: str, target: str) -> str:
    """Return the common beginning of the names of reports for a job and target."""
    safe = "".join(char if char.isalnum() or char in "._" else "_" for char in target)[:60]
    return f"{job}-{safe}" if safe else job


def earlier_reports(session: Session, job: str, target: str) -> list[Path]:
    """Return saved reports that may be of the same job and target, the newest first.

    Other targets and other clusters may share these names: the job checks the contents.
    """
    directory = _reports(session.environ)
    found = sorted(directory.glob(f"{stem_of(job, target)}-[0-9]*/report.json"), reverse=True)
    if given := session.given.get("report"):
        # Reports beside the new one, which the user keeps there.
        beside = Path(str(given)).expanduser().absolute().parent
        found += [*beside.glob("*/report.json"), *beside.glob("*/*/report.json")]
    return found


def _spec_file(path: Path, job: str) -> Document:
    import yaml

    try:
        document = yaml.safe_load(path.read_text("utf-8"))
    except OSError as exc:
        raise UsageError(f"{path}: cannot be read: {exc.strerror}") from exc
    except (yaml.YAMLError, UnicodeDecodeError) as exc:
        raise UsageError(f"{path}: is neither YAML nor JSON: {exc}") from exc
    if not isinstance(document, dict):
        raise UsageError(f"{path}: is not a spec")
    if document.setdefault("job", job) != job:
        raise UsageError(
            f"{path} is a spec of {document['job']}", hint=f"pyconnect reconcile {document['job']}"
        )
    return {str(key): value for key, value in document.items()}


def _registries(before: object, given: Mapping[str, object]) -> Document:
    """Return the schema registries by cluster; options are about the main one."""
    registries: Document = dict(before) if isinstance(before, dict) else {}
    main = registries.get(MAIN)
    told: Document = dict(main) if isinstance(main, dict) else {}
    if url := given.get("registry"):
        told["url"] = str(url)
    if properties := given.get("registry_properties"):
        # The spec names the file, as it names Kafka's properties.
        told["properties"] = str(Path(str(properties)).expanduser().absolute())
    return registries | ({MAIN: told} if told else {})


def _spark(before: object, given: Mapping[str, object]) -> Document:
    spark: Document = dict(before) if isinstance(before, dict) else {}
    for name in ("master", "remote", "properties_file"):
        if value := given.get(name):
            spark[name] = str(value)
    for name in ("jars", "packages"):
        if listed := _list(given.get(name)):
            spark[name] = [part for entry in listed for part in str(entry).split(",") if part]
    if settings := _list(given.get("conf")):
        conf = spark.get("conf")
        merged = dict(conf) if isinstance(conf, dict) else {}
        for setting in settings:
            key, equals, value = str(setting).partition("=")
            if not equals:
                raise UsageError(f"--conf: `{setting}` is not KEY=VALUE")
            merged[key] = value
        spark["conf"] = merged
    return spark


def _list(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else ()


def _number(text: str) -> int:
    if not re.fullmatch("0*[1-9][0-9]{0,8}", text):
        raise UsageError(f"--findings: `{text}` is not a number of findings")
    return int(text)
