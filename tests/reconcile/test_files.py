"""Files of a compare: bounded copies, changes, and lines that are found again."""

from hashlib import sha256
from pathlib import Path

import pytest

from pyconnect_reconcile import files
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.files import (
    FixedFiles,
    are_plain,
    bounded_copies,
    changes,
    complete_files,
    fingerprint,
    growing_copies,
    local_files,
    require_readable,
    rows_of_lines,
    with_marks_kept,
    with_unread_marks,
)
from pyconnect_reconcile.findings import Severity


def test_a_file_is_cut_at_the_committed_offset(tmp_path: Path) -> None:
    """The committed part and the rest are copied, and the copies stay when the file grows."""
    file = tmp_path / "in.txt"
    file.write_bytes(b"one\ntwo\nthree\n")
    fixed = bounded_copies(str(file), 8, tmp_path)
    [(head, name)] = fixed.copies.items()
    assert name == str(file)
    assert fixed.uncommitted is not None
    assert (head.read_bytes(), fixed.uncommitted.read_bytes()) == (b"one\ntwo\n", b"three\n")
    whole = bounded_copies(str(file), 14, tmp_path)
    with file.open("ab") as stream:
        stream.write(b"four\n")
    assert [copy.read_bytes() for copy in whole.copies] == [b"one\ntwo\nthree\n"]
    assert whole.uncommitted is None
    assert (fixed.digest, whole.digest) == tuple(
        sha256(part).hexdigest() for part in (b"one\ntwo\n", b"one\ntwo\nthree\n")
    )
    file.write_bytes(b"one\ntwo\nthree\n")
    with pytest.raises(ReconcileError, match="14 bytes, but the committed offset is 15"):
        bounded_copies(str(file), 15, tmp_path)


def test_only_the_committed_part_has_to_stay_as_it_was(tmp_path: Path) -> None:
    """Appended bytes are no change; a changed byte, a cut file and a missing file are."""
    file = tmp_path / "in.txt"
    file.write_bytes(b"one\ntwo\n")
    fixed = bounded_copies(str(file), 8, tmp_path)
    for content, same in (
        (b"one\ntwo\n", True),
        (b"one\ntwo\nthree\n", True),
        (b"one\ntwO\nthree\n", False),
        (b"one\n", False),
    ):
        file.write_bytes(content)
        assert (fixed.changes([str(file)]) == []) is same, content
    file.unlink()
    [finding] = fixed.changes([str(file)])
    assert finding.kind == "file-changed"


@pytest.mark.parametrize("block", [1, 3, 2**20])
def test_files_that_grow_are_copied_up_to_their_last_whole_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """The unfinished last line is copied apart, and appended bytes are no change."""
    monkeypatch.setattr(files, "COPY_BYTES", block)
    contents = [b"one\ntwo\nthr", b"whole\n", b"", b"only"]
    paths = [tmp_path / f"{number}.txt" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    copies = tmp_path / "copies"
    copies.mkdir()
    names = [str(path) for path in paths]
    fixed = growing_copies(names, copies)
    assert list(fixed.copies.values()) == names
    assert [copy.read_bytes() for copy in fixed.copies] == [b"one\ntwo\n", b"whole\n", b"", b""]
    assert fixed.unfinished is not None
    assert fixed.unfinished.read_bytes() == b"thr\nonly\n"
    with paths[0].open("ab") as stream:
        stream.write(b"ee\n")
    assert fixed.changes(names) == []


def test_compressed_files_are_read_in_place(tmp_path: Path) -> None:
    """Compressed files are not copied in part, and a mark at their beginning may stay unread."""
    names = [str(tmp_path / name) for name in ("a.json", "b.gz", "c.zst")]
    for name in names:
        Path(name).write_text("{}")
    assert are_plain(names[:1])
    assert not are_plain([str(tmp_path)])
    assert not are_plain([*names[:1], "s3a://far/d.json"])
    assert [*with_unread_marks([*names, "s3a://far/d.json"])] == ["s3a://far/d.json", names[2]]
    with pytest.raises(ReconcileError, match=r"b\.gz: cannot be read: Not a gzipped file"):
        with_marks_kept(FixedFiles(), names, tmp_path)


def test_a_file_that_changes_meanwhile_prevents_a_match(tmp_path: Path) -> None:
    """Files that grow, change, appear or disappear are named in one finding."""
    file, other = tmp_path / "a.txt", tmp_path / "b.txt"
    file.write_text("x")
    before = fingerprint([str(tmp_path)])
    assert changes(before, fingerprint([str(tmp_path)])) == []
    file.write_text("xy")
    other.write_text("z")
    [finding] = changes(before, fingerprint([str(tmp_path)]))
    assert (finding.kind, finding.severity, finding.count) == ("file-changed", Severity.UNKNOWN, 2)
    assert str(file) in finding.message


def test_directories_and_patterns_name_data_files_only(tmp_path: Path) -> None:
    """Markers and hidden files are left out, as in Spark; remote paths are left to Spark."""
    names = ("part-0.parquet", "_SUCCESS", ".part-0.crc", "_x.parquet", "_tmp/0/a.parquet")
    for name in (*names, ".t/b.parquet", "_day=1/c.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    expected = [tmp_path / "part-0.parquet"]
    assert local_files([str(tmp_path), "s3a://bucket/key"]) == [
        tmp_path / "_day=1/c.parquet", *expected,
    ]  # fmt: skip
    assert local_files([str(tmp_path / "*.parquet")]) == expected
    odd = tmp_path / "[a].txt"
    odd.touch()
    assert local_files([str(odd)]) == [odd]
    for read in (
        complete_files([str(tmp_path)], None),
        complete_files([str(tmp_path / "_tmp")], None),
    ):
        require_readable(read.listed)
    with pytest.raises(ReconcileError, match="no file whose name begins with _"):
        complete_files([str(tmp_path / "_x.parquet")], None)
    with pytest.raises(ReconcileError, match="does not exist"):
        local_files([str(tmp_path / "*.csv")])


def test_lines_are_found_again_by_their_bytes(tmp_path: Path) -> None:
    """A line is found by its bytes, with any line end, and its number begins at 1."""
    file = tmp_path / "in.txt"
    file.write_bytes(b"a\r\nb\na\nc")
    found = rows_of_lines([file], {b"a", b"a\r", b"c", b"x"})
    assert found == {
        b"a": [(str(file), 1), (str(file), 3)],
        b"a\r": [(str(file), 1)],
        b"c": [(str(file), 4)],
        b"x": [],
    }
