"""Files are replaced as a whole; links and pipes stay."""

import os
import stat
import threading
from pathlib import Path

import pytest

from pyconnect_cli.render.streams import write_whole


def test_a_file_is_its_owners_unless_others_are_to_read_it(tmp_path: Path) -> None:
    """By default only the owner can read a file, because backups and configurations are private."""
    write_whole(tmp_path / "private", "a")
    write_whole(tmp_path / "shown", "b", mode=0o644)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("private", "shown")]
    assert modes == [0o600, 0o644]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """The target of a link is replaced; a pipe such as /dev/stdout is written to."""
    (tmp_path / "kept").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "kept").read_text() == "new"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, "text")
    reader.join(60)
    assert read == ["text"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_file_that_cannot_be_written_is_left_as_it_was(tmp_path: Path) -> None:
    """After a failure the old file is left, and no other file."""
    file = tmp_path / "file"
    file.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(file, "\ud800")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]
