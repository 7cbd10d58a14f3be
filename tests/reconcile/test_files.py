"""Files of a compare: bounded, watched, and their lines found again."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.files import (
    bounded_copies,
    changes,
    fingerprint,
    local_files,
    rows_of_lines,
)
from pyconnect_reconcile.findings import Severity


def test_a_file_is_cut_at_the_committed_offset(tmp_path: Path) -> None:
    """Both parts are the file's bytes; nothing is copied when the offset is its end."""
    file = tmp_path / "in.txt"
    file.write_bytes(b"one\ntwo\nthree\n")
    head, tail = bounded_copies(str(file), 8, tmp_path)
    assert tail is not None
    assert (Path(head).read_bytes(), Path(tail).read_bytes()) == (b"one\ntwo\n", b"three\n")
    assert bounded_copies(str(file), 14, tmp_path) == (str(file), None)
    with pytest.raises(ReconcileError, match="14 bytes, but the committed offset is 15"):
        bounded_copies(str(file), 15, tmp_path)


def test_a_file_that_is_written_meanwhile_is_no_agreement(tmp_path: Path) -> None:
    """Files that grow, change, come or go are named."""
    file, other = tmp_path / "a.txt", tmp_path / "b.txt"
    file.write_text("x")
    before = fingerprint([str(tmp_path)])
    assert changes(before, fingerprint([str(tmp_path)])) == []
    file.write_text("xy")
    other.write_text("z")
    [finding] = changes(before, fingerprint([str(tmp_path)]))
    assert (finding.kind, finding.severity, finding.count) == (
        "file-changed",
        Severity.UNKNOWN,
        2,
    )
    assert str(file) in finding.message


def test_directories_and_patterns_name_data_files_only(tmp_path: Path) -> None:
    """Markers and hidden files are left out, as Spark leaves them; remote paths are its own."""
    for name in ("part-0.parquet", "_SUCCESS", ".part-0.crc"):
        (tmp_path / name).touch()
    expected = [tmp_path / "part-0.parquet"]
    assert local_files([str(tmp_path), "s3a://bucket/key"]) == expected
    assert local_files([str(tmp_path / "*.parquet")]) == expected
    with pytest.raises(ReconcileError, match="no such file"):
        local_files([str(tmp_path / "*.csv")])


def test_lines_are_found_again_by_their_bytes(tmp_path: Path) -> None:
    """The number of the line, from 1, whatever ends it."""
    file = tmp_path / "in.txt"
    file.write_bytes(b"a\r\nb\na\nc")
    found = rows_of_lines([file], {b"a", b"c", b"x"})
    assert found == {b"a": [(str(file), 1), (str(file), 3)], b"c": [(str(file), 4)], b"x": []}
