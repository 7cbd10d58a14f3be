"""An archive of Spark's classes, which the driver's JVM maps instead of loading them from jars.

It takes 170 MB, so it is made only where it will be used again: by `spark_jars` as a command, and
by the fourth audit. A process of its own writes it, which runs two
audits of small files. An audit's own JVM does not: it would end later, also after Ctrl-C.

Java checks that an archive fits it and the class path, and runs without one that does not. It does
not notice that a file has lost its end, which a failure of the machine can cause, and crashes: the
size is recorded beside the archive.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from pyconnect_cli.reconcile.process import EventCalls, ProcessEnd, run_process
from pyconnect_sandbox.java import Java
from pyconnect_sandbox.progress import Progress, silent
from pyconnect_sandbox.runtime import (
    archive_name,
    archive_options,
    archives_root,
    keep_archives,
    remove_unused,
)

MAIN_CLASS = "org.apache.spark.deploy.SparkSubmit"
OPTIONS_VARIABLE = "SPARK_SUBMIT_OPTS"
"""Options for the driver's JVM beside those of the settings; other JVMs of Spark ignore them."""
MOST_ARCHIVES = 3
AUDITS_WITHOUT = 3
"""The number of audits that together take the processor time of making the archive."""
FREE_BYTES = 1_000_000_000
_QUICK = {
    "spark.driver.memory": "1g",
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1",
}
_REHEARSED = {"version": 1, "job": "source-topic", "spark": {"master": "local[2]", "conf": _QUICK}}
_NO_EVENTS = EventCalls(step=lambda _: None, progress=lambda _done, _total: None)


class SparkArchive:
    """The archive for one Java and one installation of Spark."""

    def __init__(self, java: Java, environ: Mapping[str, str], root: Path | None = None) -> None:
        """Name the archive; `root` None is the user's directory of archives."""
        self._environ = environ
        self._root = archives_root() if root is None else root
        jars = _spark_home(environ) / "jars"
        # The client of Spark Connect alone has no jars.
        self._possible = jars.is_dir()
        facts = (java.executable, jars, MAIN_CLASS, ())
        self.name = archive_name(*facts) if self._possible else "none"
        self.path = self._root / self.name
        # Beside the archive, so that a finished one is renamed and not copied.
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
        """Count this audit, and make the archive when enough others were before it.

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

        A cache that cannot be written, and a disk that is almost full, stay without one.
        """
        if not self._possible or self.is_complete():
            return
        with suppress(OSError):
            self._root.mkdir(parents=True, exist_ok=True)
            if shutil.disk_usage(self._root).free < FREE_BYTES:
                return
            with self._locked() as mine:
                if not mine or self.is_complete() or self._refused.exists():
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

    @contextmanager
    def _locked(self) -> Iterator[bool]:
        with self.path.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True


def _spark_home(environ: Mapping[str, str]) -> Path:
    if home := environ.get("SPARK_HOME"):
        return Path(home)
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise FileNotFoundError("pyspark")
    return Path(found.origin).parent


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
