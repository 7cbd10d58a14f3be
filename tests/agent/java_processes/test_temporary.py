"""Directories for temporary files of Java processes."""

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from pyconnect_agent.java_processes.launch import (
    TEMPORARY_PREFIX,
    TemporaryDirectory,
    remove_leftovers,
)
from tests.support.cases import cases


def test_a_directory_stays_while_its_lock_is_held(tmp_path: Path) -> None:
    """By the process itself after the one that started it has ended."""
    made = TemporaryDirectory(tmp_path)
    (made.path / "native.so").touch()
    inherited = os.dup(made.descriptor)
    os.close(made.descriptor)
    remove_leftovers(tmp_path)
    assert (made.path / "native.so").exists()
    assert made.path.stat().st_mode & 0o777 == 0o700
    os.close(inherited)
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_is_removed_with_its_process(tmp_path: Path) -> None:
    """Once, although the end is seen twice."""
    made = TemporaryDirectory(tmp_path)
    (made.path / "sub").mkdir()
    made.remove()
    made.remove()
    assert list(tmp_path.iterdir()) == []


def test_other_files_are_no_leftovers(tmp_path: Path) -> None:
    """Nor links, nor a directory that does not exist."""
    (tmp_path / "others").mkdir()
    (tmp_path / f"{TEMPORARY_PREFIX}file").touch()
    (tmp_path / f"{TEMPORARY_PREFIX}link").symlink_to(tmp_path / "others")
    remove_leftovers(tmp_path)
    remove_leftovers(tmp_path / "none")
    assert len(list(tmp_path.iterdir())) == 3


@cases("when", "before it is opened", "before it is locked")
def test_a_directory_that_another_process_takes_for_a_leftover_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """It is new, and not locked yet."""
    makes, opens = tempfile.mkdtemp, os.open
    taken = []

    def make(**arguments: Any) -> str:
        made = makes(**arguments)
        if not taken and when == "before it is opened":
            taken.append(made)
            Path(made).rmdir()
        return made

    def open_then_lose(path: Path, flags: int) -> int:
        descriptor = opens(path, flags)
        if not taken:
            taken.append(path)
            path.rmdir()
        return descriptor

    monkeypatch.setattr(tempfile, "mkdtemp", make)
    monkeypatch.setattr(os, "open", open_then_lose)
    made = TemporaryDirectory(tmp_path)
    assert taken
    assert made.path.exists()
    made.remove()
