"""The options that every job takes, and the spec that is made of them, contexts and files."""

import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from pyconnect_cli.directories import state_directory
from pyconnect_cli.errors import PreconditionFailed, UsageError
from pyconnect_cli.parsing.options import CRON_OPTIONS, OptionGroups, OptionSpec
from pyconnect_cli.parsing.values import parse_moment
from pyconnect_cli.reconcile.connectors import Document
from pyconnect_cli.session import Session
from pyconnect_cli.verbs import CronVerb

REPORT_OPTIONS = (
    OptionSpec(("--report",), "directory of the report; it must be new or empty", "DIR"),
    OptionSpec(("--spec",), "spec file whose members replace the resolved ones", "FILE"),
    OptionSpec(("--ranges",), "report.json whose offset ranges are read again", "FILE"),
    OptionSpec(("--since",), "start time of the records (ISO 8601, or an age such as 2h)", "TIME"),
    OptionSpec(("--since-last",), "only records after the last report with it that agreed"),
    OptionSpec(("--stable-only",), "check of only the offsets that no open transaction holds back"),
    OptionSpec(
        ("--findings",), "maximum number of stored findings of each kind (default 1000)", "N"
    ),
    OptionSpec(("--hide-keys",), "hashes instead of the records' keys in the report"),
    OptionSpec(("--fail-unparsable",), "values that do not parse count as differences"),
    OptionSpec(("--print-spec",), "print the resolved spec without a run"),
)
REGISTRY_OPTIONS = (
    OptionSpec(("--registry",), "URL of the schema registry", "URL"),
    OptionSpec(
        ("--registry-properties",),
        "properties file of the access to the schema registry, with the keys of converters",
        "FILE",
    ),
)
SPARK_OPTIONS = (
    OptionSpec(("--master",), "master of Spark (default local[*])", "URL"),
    OptionSpec(("--remote",), "address of a Spark Connect server: sc://HOST:PORT", "URL"),
    OptionSpec(("--conf",), "setting of Spark", "KEY=VALUE", repeatable=True),
    OptionSpec(("--packages",), "Maven coordinates of packages for Spark", "LIST", repeatable=True),
    OptionSpec(("--jars",), "jar files for Spark", "LIST", repeatable=True),
    OptionSpec(("--properties-file",), "properties file with settings of Spark", "FILE"),
)


class ReconcileVerb(CronVerb):
    """A job: options of Spark, of the report and for cron."""

    shared_specs: OptionGroups = (
        ("Report", REPORT_OPTIONS),
        ("Schema registry", REGISTRY_OPTIONS),
        ("Spark", SPARK_OPTIONS),
        ("Cron", CRON_OPTIONS),
    )


ROW_OPTIONS = (
    OptionSpec(
        ("--value",),
        "format of the topic's values: bytes, text, json, connect-json, avro or json-schema",
        "FORM",
    ),
    OptionSpec(("--column",), "field to compare (default: all)", "NAME:TYPE", repeatable=True),
    OptionSpec(("--upsert",), "comparison of only the last version of each key"),
    OptionSpec(
        ("--allow-duplicates",),
        "repeated rows do not count as differences (at-least-once delivery)",
    ),
)
DATA_OPTIONS = (
    OptionSpec(
        ("--topic",), "topic to compare instead of the connector's", "TOPIC", repeatable=True
    ),
    OptionSpec(("--files",), "file, directory or pattern to compare", "PATH", repeatable=True),
    OptionSpec(
        ("--format",), "format of the files: text, json, csv, parquet, avro or orc", "FORMAT"
    ),
    OptionSpec(("--table",), "database table to compare; needs --jdbc-url", "TABLE"),
    OptionSpec(("--jdbc-url",), "JDBC URL of the table's database", "URL"),
    OptionSpec(
        ("--jdbc-properties",),
        "properties file with user, password and driver of the database",
        "FILE",
    ),
)


class CompareVerb(ReconcileVerb):
    """A job that compares rows."""

    shared_specs = (("Rows", ROW_OPTIONS), *ReconcileVerb.shared_specs)


class DataVerb(CompareVerb):
    """A job that compares a topic with files or a table."""

    shared_specs = (("Data", DATA_OPTIONS), *CompareVerb.shared_specs)


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
        if not re.fullmatch("0*[1-9][0-9]{0,8}", str(findings)):
            raise UsageError(f"--findings: `{findings}` is not a number of findings")
        document["findings"] = int(str(findings))
    for name in ("hide_keys", "fail_unparsable", "stable_only"):
        if given.get(name):
            document[name] = True
    # Options are about the registry of the main cluster.
    before = document.get("registries")
    registries: Document = dict(before) if isinstance(before, dict) else {}
    main = registries.get(MAIN)
    told: Document = dict(main) if isinstance(main, dict) else {}
    if url := given.get("registry"):
        told["url"] = str(url)
    if properties := given.get("registry_properties"):
        # The spec names the file, as it names Kafka's properties.
        told["properties"] = absolute(properties)
    if told:
        registries[MAIN] = told
    if registries:
        document["registries"] = registries
    clusters = document.setdefault("clusters", {})
    assert isinstance(clusters, dict)
    clusters.setdefault(MAIN, cluster_of(session))
    document["spark"] = _spark(document.get("spark"), given)
    return document


def absolute(given: object) -> str:
    """Return the whole path of a file that the user named."""
    return str(Path(str(given)).expanduser().absolute())


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
        cluster["properties"] = absolute(settings.kafka_properties)
    return cluster


def _reports(environ: Mapping[str, str]) -> Path:
    return state_directory(environ) / "reconcile"


def report_directories(
    session: Session, job: str, targets: Sequence[str], now: datetime
) -> list[Path]:
    """Return directories for reports: below the given one, else new ones in the state directory.

    A single report has the given directory itself.
    """
    if given := session.given.get("report"):
        directory = Path(absolute(given))
        if len(targets) == 1:
            return [directory]
        return [directory / f"{job}-{quote(target, safe='')}" for target in targets]
    stamp = f"{now:%Y%m%dT%H%M%S}-{os.getpid()}"
    # Different targets may have the same stem.
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
        beside = Path(absolute(given)).parent
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
