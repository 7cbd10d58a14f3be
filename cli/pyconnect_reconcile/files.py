"""Files as sides of a compare: bounded copies, checks for changes, and lines found again.

Only paths without a scheme, which are the driver's own files, get all of that; Spark reads others
(s3a://, hdfs://) as they are.
"""

import bz2
import glob
import gzip
import hashlib
import os
import shutil
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, cast

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import Finding, count_of, unknown

Fingerprint = tuple[tuple[str, int, int], ...]
COPY_BYTES = 2**20
COMPRESSED = frozenset({".gz", ".bz2", ".deflate", ".lz4", ".snappy", ".zst"})
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedFiles:
    """The files of a side as they were at one moment of the run.

    `copies` are read in place of files that may grow: copy to original; empty where the files
    themselves are read. `uncommitted` is the part beyond a source's committed offset,
    `unfinished` holds the last lines that had no end yet. `listed` are complete files that are read
    in place of a directory; `beyond` are those of them that a source has not read to the end.
    `table` is the name of an Iceberg table in Spark, one snapshot, which has no files here;
    `snapshot` is that snapshot: `table_uuid`, and `snapshot_id`, None for a table without any.
    `nanoseconds` is a data file of another writer that may have timestamps of nanoseconds.
    `digest` is the SHA-256 of a committed part.
    `marked` maps files that begin with a byte order mark to copies with two: Hadoop's reader of
    lines removes one without a warning.
    """

    before: Fingerprint = ()
    copies: Mapping[Path, str] = field(default_factory=dict)
    uncommitted: Path | None = None
    unfinished: Path | None = None
    listed: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    table: str | None = None
    snapshot: Mapping[str, object] | None = None
    nanoseconds: str | None = None
    digest: str | None = None
    marked: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int | None:
        """The number of bytes that are read; None: unknown, as of files that are not local."""
        if not self.copies:
            return sum(size for _, size, _ in self.before) or None
        inside = (copy.rglob("*") if copy.is_dir() else [copy] for copy in self.copies)
        files = (file for each in inside for file in each if file.is_file())
        return sum(file.stat().st_size for file in files) or None

    def as_read(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Return the paths that Spark reads in place of these paths of lines."""
        if not self.marked:
            return tuple(paths)
        remote = (path for path in paths if not is_local(path))
        names = map(str, local_files(paths))
        return (*remote, *(self.marked.get(name, name) for name in names))

    def changes(self, paths: Sequence[str]) -> list[Finding]:
        """Return one finding if bytes that were read have changed; appended bytes are ignored."""
        if self.table is not None:
            return []
        if self.listed or self.beyond:
            return changes(self.before, fingerprint((*self.listed, *self.beyond)))
        if not self.copies:
            return changes(self.before, fingerprint(paths))
        changed = [name for copy, name in self.copies.items() if not begins_with(name, copy)]
        return _changed(changed)


def with_marks_kept(fixed: FixedFiles, paths: Sequence[str], directory: Path) -> FixedFiles:
    """Return the files with copies of those whose lines begin with a byte order mark."""
    tails = (str(tail) for tail in (fixed.uncommitted, fixed.unfinished) if tail is not None)
    whole = tuple(map(str, fixed.copies)) or fixed.listed or tuple(paths)
    marked: dict[str, str] = {}
    for path in local_files((*whole, *tails, *fixed.beyond)):
        opens: dict[str, Callable[[Path], object]] = {".gz": gzip.open, ".bz2": bz2.open}
        opened = opens[path.suffix](path) if path.suffix in opens else path.open("rb")
        with cast("BinaryIO", opened) as source:
            try:
                head = source.read(len(BOM_UTF8))
            except (OSError, EOFError) as exc:
                raise ReconcileError(
                    f"{path}: cannot be read: {exc}",
                    hint="the ending of a name says how Spark reads a file: .gz, .bz2, .zst",
                ) from exc
            if head != BOM_UTF8:
                continue
            copy = directory / f"marked-{len(marked)}"
            with copy.open("wb") as target:
                target.write(BOM_UTF8 * 2)
                shutil.copyfileobj(source, target, COPY_BYTES)
        marked[str(path)] = str(copy)
    return replace(fixed, marked=marked)


def with_unread_marks(paths: Sequence[str]) -> Iterator[str]:
    """Yield the paths whose byte order marks are not looked for: remote or compressed otherwise."""
    yield from (path for path in paths if not is_local(path))
    others = COMPRESSED - {".gz", ".bz2"}
    yield from (str(path) for path in local_files(paths) if path.suffix in others)


def are_plain(paths: Sequence[str]) -> bool:
    """Return whether paths are local, without files that are compressed by their name."""
    return all(map(is_local, paths)) and not any(
        path.suffix in COMPRESSED for path in local_files(paths)
    )


def is_local(path: str) -> bool:
    """Return whether a path is on this machine."""
    return "://" not in path


def absolute(path: str) -> str:
    """Return a local path for Java, which runs in another directory; others unchanged."""
    return str(Path(path).expanduser().absolute()) if is_local(path) else path


def local_files(paths: Sequence[str]) -> list[Path]:
    """Return the files that local paths, directories and patterns name, sorted.

    Hidden files are left out, in a directory or where a pattern matches them.
    """
    found: list[Path] = []
    for match in _roots(paths):
        inside = match.rglob("*") if match.is_dir() else [match]
        found += (p for p in inside if p.is_file() and is_data(str(p.relative_to(match))))
    return sorted(found)


def _roots(paths: Sequence[str]) -> Iterator[Path]:
    """Yield the files and directories that local paths and patterns name."""
    for path in filter(is_local, paths):
        names = [path] if Path(path).exists() else glob.glob(path)  # noqa: PTH207
        matches = [Path(name) for name in names if name == path or is_data(Path(name).name)]
        if not matches:
            raise ReconcileError(f"{path}: the file does not exist")
        yield from matches


def in_plain_directories(paths: Sequence[str]) -> bool:
    """Return whether files are in directories that are not partitions, which Spark skips."""
    return any(
        "=" not in part
        for root in _roots(paths)
        if root.is_dir()
        for file in local_files([str(root)])
        for part in file.relative_to(root).parent.parts
    )


def is_data(name: str) -> bool:
    """Return whether Spark reads a file by its relative name: no part is a marker or hidden.

    `_a=1` is a directory of a partition. `.` is a file that was named itself.
    """
    parts = [part for part in name.split("/") if part != "."]
    return not any(p.startswith(".") or (p.startswith("_") and "=" not in p) for p in parts)


def require_readable(paths: Iterable[str]) -> None:
    """Raise ReconcileError for a named file that Spark would skip."""
    for path in paths:
        if is_local(path) and Path(path).is_file() and not is_data(Path(path).name):
            raise ReconcileError(
                f"{path}: Spark reads no file whose name begins with _ or .",
                hint="give a copy or a link with another name",
            )


def partition_columns(paths: Sequence[str]) -> set[str]:
    """Return the columns that Spark reads from directories such as `a=1` below local paths."""
    found = (each for path in filter(is_local, paths) for each in Path(path).rglob("*=*"))
    return {each.name.partition("=")[0] for each in found if each.is_dir()}


def fingerprint(paths: Sequence[str]) -> Fingerprint:
    """Return names, sizes and times of change of local files."""
    stats = [(path, path.stat()) for path in local_files(paths)]
    return tuple((str(path), stat.st_size, stat.st_mtime_ns) for path, stat in stats)


def changes(before: Fingerprint, after: Fingerprint) -> list[Finding]:
    """Return one finding when files were written while they were read."""
    return _changed({name for name, _, _ in set(before) ^ set(after)})


def _changed(files: Iterable[str]) -> list[Finding]:
    names = sorted(files)
    if not names:
        return []
    return [
        unknown(
            kind="file-changed",
            message=f"files were written while they were read: {', '.join(names[:5])}; the"
            " findings may be due to that",
            count=len(names),
        )
    ]


def complete_files(paths: Sequence[str], read: Sequence[str] | None) -> FixedFiles:
    """Return the files that exist now; ReconcileError if there are none."""
    require_readable(paths)
    names = [str(path) for path in local_files(paths)]
    if not names:
        raise ReconcileError(f"{', '.join(paths)}: there are no files yet")
    wanted = set(names if read is None else read)
    if gone := sorted(wanted - set(names)):
        raise ReconcileError(
            f"{count_of(len(gone), 'file that the source has read is')} gone, such as {gone[0]}",
            hint="put them back: their records have no rows to be compared with",
        )
    return FixedFiles(
        before=fingerprint(names),
        listed=tuple(name for name in names if name in wanted),
        beyond=tuple(name for name in names if name not in wanted),
    )


def bounded_copies(path: str, limit_bytes: int, directory: Path) -> FixedFiles:
    """Return copies of the first `limit_bytes` of a file and of the rest.

    The file may grow: Spark would also read a line that begins after the captured end.
    ReconcileError when the file is shorter than the limit, which is the offset of another file.
    """
    file = Path(path)
    before = fingerprint([path])
    size = file.stat().st_size
    if size < limit_bytes:
        raise ReconcileError(
            f"{path} has {size} bytes, but the committed offset is {limit_bytes}",
            hint="the file was truncated or replaced since it was read",
        )
    head, tail = directory / "committed-part", directory / "uncommitted-part"
    with file.open("rb") as source:
        _copy(source, head, limit_bytes)
        _copy(source, tail, None)
    with head.open("rb") as copy:
        digest = hashlib.file_digest(copy, "sha256").hexdigest()
    return FixedFiles(
        before=before,
        digest=digest,
        copies={head: path},
        uncommitted=tail if tail.stat().st_size else None,
    )


def growing_copies(paths: Sequence[str], directory: Path) -> FixedFiles:
    """Return copies of files that a sink appends to, each with its present length.

    A last line without an end may be half of a row: it is cut off and kept apart.
    """
    before = fingerprint(paths)
    copies: dict[Path, str] = {}
    rest = directory / "unfinished-lines"
    with rest.open("wb") as unfinished:
        for number, (name, size, _) in enumerate(before):
            copy = directory / f"copy-{number}"
            with Path(name).open("rb") as source:
                _copy(source, copy, size)
            with copy.open("r+b") as file:
                length = at = file.seek(0, os.SEEK_END)
                line = b""
                while at > 0 and b"\n" not in line:
                    at = max(at - COPY_BYTES, 0)
                    file.seek(at)
                    line = file.read(length - at)
                line = line[line.rfind(b"\n") + 1 :]
                file.truncate(length - len(line))
            if line:
                unfinished.write(line + b"\n")
            copies[copy] = name
    return FixedFiles(
        before=before, copies=copies, unfinished=rest if rest.stat().st_size else None
    )


def _copy(source: BinaryIO, target: Path, limit_bytes: int | None) -> None:
    """Copy `limit_bytes` from the source's position; None: all of the rest."""
    left = limit_bytes
    with target.open("wb") as copy:
        while left != 0 and (
            chunk := source.read(COPY_BYTES if left is None else min(COPY_BYTES, left))
        ):
            copy.write(chunk)
            left = None if left is None else left - len(chunk)


def begins_with(path: str, head: Path) -> bool:
    """Return whether a file still begins with the bytes of a copy."""
    try:
        with Path(path).open("rb") as file, head.open("rb") as copy:
            while expected := copy.read(COPY_BYTES):
                if file.read(len(expected)) != expected:
                    return False
    except FileNotFoundError:
        return False
    return True


def rows_of_lines(
    paths: Iterable[Path], lines: set[bytes]
) -> Mapping[bytes, list[tuple[str, int]]]:
    """Return the files and line numbers (from 1) of each of these lines."""
    found: dict[bytes, list[tuple[str, int]]] = {line: [] for line in lines}
    for path in paths:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                # A carriage return belongs to a sink's line, but ends a source's line.
                whole = line.removesuffix(b"\n")
                for content in {whole, whole.removesuffix(b"\r")} & found.keys():
                    found[content].append((str(path), number))
    return found


def int96_columns(file: str) -> set[str]:
    """Return the columns of a Parquet file that are INT96; none for a file that Spark wrote.

    Spark's timestamps have microseconds. A file of another writer may keep Spark's schema in its
    footer; Spark itself then does not look for INT96.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        footer = parquet.read_metadata(file)
    except (OSError, pa.ArrowInvalid) as exc:
        raise ReconcileError(f"{file} is not a Parquet file: {exc}") from exc
    if footer.created_by.startswith("parquet-mr") and _SPARK_SCHEMA in (footer.metadata or {}):
        return set()
    columns = [footer.schema.column(number) for number in range(len(footer.schema))]
    old = [each.path for each in columns if each.physical_type == "INT96"]
    return {name for path in old for name in (path, path.partition(".")[0])}
