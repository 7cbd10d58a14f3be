"""Files for Spark in the user's cache: jars that PySpark lacks, and an archive of its classes.

Spark's Kafka source, Avro, JDBC drivers and Iceberg are fetched once. Each jar is known by its path
in a Maven repository and its SHA-256: drivers here, those of Spark's releases in a table for each
line.

The driver's JVM maps the archive instead of loading its classes from jars. An archive takes 170 MB,
so it is made only where it will be used again: by this module as a command, and by the fourth
audit. A separate process writes it and runs two audits of small files for it. An audit's own JVM
does not: it would end later, also after Ctrl-C. Java checks that an archive fits it and the class
path, and runs without one that does not. Java crashes if a file has lost its end, which a failure
of the machine can cause: so the size is recorded beside the archive.
"""

import fcntl
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from pyconnect_cli.errors import PreconditionFailed
from pyconnect_cli.reconcile.run import EventCalls, ProcessEnd, run_process
from pyconnect_clients.installation import install_command
from pyconnect_sandbox.errors import JavaUnavailable
from pyconnect_sandbox.jars import JarCache, Progress, download, on_stderr, silent
from pyconnect_sandbox.runtime import (
    Java,
    archive_name,
    archive_options,
    archives_root,
    cache_root,
    find_java,
    keep_archives,
    remove_unused,
)

EXTRA = "reconcile"
KAFKA, AVRO, ICEBERG = "kafka", "avro", "iceberg"
"""Uses of jars in the tables of Spark's releases."""
RELEASES = ("3.5", "4.0", "4.1", "4.2")
"""Lines of Spark with a table (`scripts/spark_jars.py` writes it) for all their patch releases."""
_LACKING = {KAFKA: "topics", AVRO: "Avro", ICEBERG: "Iceberg tables"}
_VERSION = re.compile(r"^__version__[^=]*=\s*['\"](\d[\w.]*)", re.MULTILINE)
_MARIADB = {
    "org/mariadb/jdbc/mariadb-java-client/3.5.6/mariadb-java-client-3.5.6.jar": (
        "a129703efd7b0f334564d46753de999f09b3a361489a2eb647e6020390981cc9"
    )
}
JDBC = {
    "postgresql": {
        "org/postgresql/postgresql/42.7.8/postgresql-42.7.8.jar": (
            "2a32a9dcbc42d67a50ad3a0de5efd102c8d2be46720045f2cbd6689f160ab7c7"
        )
    },
    "mariadb": _MARIADB,
    "mysql": _MARIADB,
}
"""The driver of a database, by the scheme of its JDBC URL."""
MAIN_CLASS = "org.apache.spark.deploy.SparkSubmit"
OPTIONS_VARIABLE = "SPARK_SUBMIT_OPTS"
"""Options for the driver's JVM beside those of the settings; other JVMs of Spark ignore them."""
MOST_ARCHIVES = 3
AUDITS_WITHOUT = 3
"""The number of audits that together take the processor time of making the archive."""
FREE_BYTES = 1_000_000_000
_QUICK = {"spark.driver.memory": "1g", "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1"}
_REHEARSED = {"version": 1, "job": "source-topic", "spark": {"master": "local[2]", "conf": _QUICK}}
_NO_EVENTS = EventCalls(step=lambda _: None, progress=lambda _done, _total: None)


def require_spark() -> str:
    """Return the version of the installed PySpark without importing it.

    Raises PreconditionFailed (exit 9) without PySpark, and for a release without known jars.
    """
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise PreconditionFailed(
            "Spark is not installed", hint=f"install it: {install_command(EXTRA)}"
        )
    text = Path(found.origin).with_name("version.py").read_text("utf-8")
    version = _VERSION.search(text)
    if version is None or line_of(version[1]) not in RELEASES:
        name = version[1] if version else "of an unknown release"
        raise PreconditionFailed(
            f"audits do not run on Spark {name}: they know Spark {', '.join(RELEASES)}",
            hint=f"install one of these: {install_command(EXTRA)}",
        )
    return version[1]


def line_of(version: str) -> str:
    """Return the line of a release, `4.1` of `4.1.4`."""
    return ".".join(version.split(".")[:2])


def require_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return a Java that Spark runs on; PreconditionFailed with the command otherwise."""
    try:
        return find_java(environment)
    except JavaUnavailable as exc:
        raise PreconditionFailed(
            exc.message.replace("Kafka needs", "Spark needs"), hint=exc.hint
        ) from exc


def jars_of_spark(use: str, *, progress: Progress = silent) -> tuple[Path, ...]:
    """Return the jars that Spark needs for a use and PySpark lacks, fetched on first use.

    Raises PreconditionFailed without Spark or Java, or when no jar serves this release of Spark;
    JarsUnavailable and JarResolutionFailed when they cannot be fetched.
    """
    return _jars(known_jars(use), progress)


kafka_source_jars = partial(jars_of_spark, KAFKA)
avro_jars = partial(jars_of_spark, AVRO)
iceberg_jars = partial(jars_of_spark, ICEBERG)


def jdbc_jars(url: str, *, progress: Progress = silent) -> tuple[Path, ...]:
    """Return the driver of a JDBC URL, fetched on first use; nothing for other databases."""
    driver = JDBC.get(url.removeprefix("jdbc:").partition(":")[0])
    return () if driver is None else _jars(driver, progress)


def table_of(line: str) -> Path:
    """Return the table of a line of Spark: SHA-256, use, path in a Maven repository."""
    return Path(__file__).with_name(f"spark-{line}.sha256")


def known_jars(use: str) -> Mapping[str, str]:
    """Return the SHA-256 of each jar for a use with the installed Spark, by the jar's path."""
    line = line_of(require_spark())
    rows = map(str.split, table_of(line).read_text("utf-8").splitlines())
    found = {path: checksum for checksum, its_use, path in rows if its_use == use}
    if not found:
        raise PreconditionFailed(
            f"no jar is known with which Spark {line} reads {_LACKING[use]}",
            hint="name one with --packages or --jars, or use another release of Spark:"
            f" {', '.join(each for each in RELEASES if each != line)}",
        )
    return found


def _jars(jars: Mapping[str, str], progress: Progress) -> tuple[Path, ...]:
    require_java()
    # The cache has the name of the artifact and version of the first jar.
    *_, artifact, version, _ = next(iter(jars)).split("/")
    checksums = {path.rpartition("/")[2]: checksum for path, checksum in jars.items()}
    cache = JarCache(version, checksums, cache_root().parent / artifact)
    if not cache.is_complete():
        progress(f"fetching {next(iter(jars)).rpartition('/')[2]}, once")
        cache.fill(
            lambda _, libs: download(jars, libs, environment=os.environ, progress=progress),
            progress,
        )
    return tuple(sorted(cache.libs.glob("*.jar")))


class SparkArchive:
    """The archive for one Java and one installation of Spark."""

    def __init__(self, java: Java, environ: Mapping[str, str], root: Path | None = None) -> None:
        """Name the archive; `root` None is the user's directory of archives."""
        self._environ = environ
        self._root = archives_root() if root is None else root
        found = find_spec("pyspark")
        home = environ.get("SPARK_HOME") or (found and found.origin and Path(found.origin).parent)
        if not home:
            raise FileNotFoundError("pyspark")
        jars = Path(home) / "jars"
        # The client of Spark Connect alone has no jars.
        self._possible = jars.is_dir()
        facts = (java.executable, jars, MAIN_CLASS, ())
        self.name = archive_name(*facts) if self._possible else "none"
        self.path = self._root / self.name
        # The directory is beside the archive, so that a finished one is renamed and not copied.
        self._unfinished = self._root / f".{self.path.stem}"
        self._refused = self.path.with_suffix(".refused")
        self._recorded = self.path.with_suffix(".bytes")

    def is_complete(self) -> bool:
        """Return whether the archive is there with the size that it was made with."""
        try:
            return self.path.stat().st_size == int(self._recorded.read_text())
        except (OSError, ValueError):
            return False

    def environment(self) -> dict[str, str]:
        """Return the environment of a process whose Spark maps the archive, if there is one."""
        if not self.is_complete():
            return dict(self._environ)
        with suppress(OSError):
            os.utime(self.path)
        return self._with_options()

    def make_when_worth_it(self, progress: Progress = silent) -> None:
        """Count this audit, and make the archive if enough audits were counted before.

        A machine that audits once or twice, such as a container without a volume, would spend
        more on the archive than it saves.
        """
        with suppress(OSError):
            self._root.mkdir(parents=True, exist_ok=True)
            with self.path.with_suffix(".audits").open("ab") as audits:
                before = audits.tell()
                audits.write(b".")
            if before >= AUDITS_WITHOUT:
                self.make(progress)

    def make(self, progress: Progress = silent) -> None:
        """Make the archive unless it exists, another process makes it, or it failed before.

        Nothing is made in a cache that cannot be written, or on a disk that is almost full.
        """
        if not self._possible or self.is_complete():
            return
        with suppress(OSError):
            self._root.mkdir(parents=True, exist_ok=True)
            if shutil.disk_usage(self._root).free < FREE_BYTES:
                return
            with self.path.with_suffix(".lock").open("w") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return
                if self.is_complete() or self._refused.exists():
                    return
                progress("making an archive of Spark's classes, once: audits start faster with it")
                self._make()

    def _make(self) -> None:
        self.path.unlink(missing_ok=True)
        self._unfinished.mkdir(exist_ok=True)
        try:
            environ = self._with_options()
            with tempfile.TemporaryDirectory(prefix="pyconnect-archive-") as work:
                ended = _rehearse(Path(work), environ)
            if ended.exit_code == 1:
                keep_archives(self._unfinished, self._root)
            if self.path.exists():
                with self.path.open("rb") as archive:
                    os.fsync(archive.fileno())
                    size = archive.seek(0, os.SEEK_END)
                self._recorded.write_text(f"{size}\n")
            else:
                # This Java cannot make one, or Spark does not start: repeating would not help.
                self._refused.write_text(f"exit status {ended.exit_code}: {ended.log}\n")
        finally:
            shutil.rmtree(self._unfinished, ignore_errors=True)
        remove_unused(MAIN_CLASS, MOST_ARCHIVES, self._root)

    def _with_options(self) -> dict[str, str]:
        options = archive_options(self.name, self._unfinished, self._root)
        # Spark's launcher splits options at spaces.
        quoted = ['"{}"'.format(o.replace("\\", "\\\\").replace('"', '\\"')) for o in options]
        given = self._environ.get(OPTIONS_VARIABLE, "")
        # The user's options come last, because the last one of a kind counts.
        return {**self._environ, OPTIONS_VARIABLE: " ".join([*quoted, given]).strip()}


def _rehearse(work: Path, environ: Mapping[str, str]) -> ProcessEnd:
    """Compare two files that differ, then the findings as JSON lines and as Parquet."""
    one, other = work / "one.txt", work / "other.txt"
    one.write_text("".join(f"line {number}\n" for number in range(1000)))
    other.write_text("".join(f"line {number}\n" for number in range(0, 1000, 2)))
    findings = work / "report-0" / "findings"
    compared: tuple[tuple[dict[str, object], dict[str, object], list[str]], ...] = (
        (_files(one, "text"), _files(other, "text"), []),
        (
            _files(findings / "findings.ndjson", "json"),
            _files(findings / "findings.parquet", "parquet"),
            ["kind:string", "message:string", "count:bigint"],
        ),
    )
    runs = {}
    for number, (left, right, columns) in enumerate(compared):
        spec = work / f"spec-{number}.json"
        spec.write_text(
            json.dumps({**_REHEARSED, "left": left, "right": right, "columns": columns})
        )
        runs[spec] = work / f"report-{number}"
    # An address of Spark Connect in the environment would need no JVM here.
    local = {name: value for name, value in environ.items() if name != "SPARK_REMOTE"}
    return run_process(runs, work / "spark.log", _NO_EVENTS, local)


def _files(path: Path, form: str) -> dict[str, object]:
    return {"kind": "files", "paths": [str(path)], "format": form}


def main(arguments: Sequence[str]) -> None:
    """Fetch what audits of every kind need, and make the archive of Spark's classes.

    With `--kafka` only what audits of topics and files need.
    """
    kafka_source_jars(progress=on_stderr)
    if "--kafka" in arguments:
        return
    avro_jars(progress=on_stderr)
    with suppress(PreconditionFailed):  # Iceberg follows a new release of Spark later.
        iceberg_jars(progress=on_stderr)
    for name in JDBC:
        jdbc_jars(f"jdbc:{name}:", progress=on_stderr)
    SparkArchive(require_java(), os.environ).make(on_stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
