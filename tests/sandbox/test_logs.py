"""The end of a log, and the lines that are added to it."""

from collections.abc import Iterator
from pathlib import Path

from pyconnect_sandbox.lifecycle import follow, print_end


class Rounds:
    """A `goes_on` that runs one step at each call and returns whether there was one."""

    def __init__(self, *steps: object) -> None:
        self._steps: Iterator[object] = iter(steps)

    def __call__(self) -> bool:
        step = next(self._steps, None)
        if callable(step):
            step()
        return step is not None


def append(path: Path, text: str) -> object:
    def step() -> None:
        with path.open("a") as file:
            file.write(text)

    return step


def test_the_last_lines_are_printed_and_the_place_is_returned(tmp_path: Path) -> None:
    """An incomplete last line is not printed but left to `follow`; a missing log has no lines."""
    log = tmp_path / "log"
    log.write_text("one\ntwo\nthree\n")
    lines: list[str] = []
    assert print_end(log, 2, lines.append) == log.stat().st_size
    assert lines == ["two", "three"]
    lines = []
    assert print_end(tmp_path / "none", 10, lines.append) == 0
    assert lines == []
    log.write_text("one\ntw")
    position = print_end(log, 10, lines.append)
    assert lines == ["one"]
    assert list(follow(log, Rounds(append(log, "o\n")), position)) == ["two"]


def test_following_goes_on_in_the_file_that_replaces_a_rolled_one(tmp_path: Path) -> None:
    """The lines before and after a roll-over come in order."""
    log = tmp_path / "log"
    log.write_text("one\n")

    def roll() -> None:
        with log.open("a") as file:
            file.write("two\n")
        log.rename(tmp_path / "log.1")
        log.write_text("three\n")

    steps = Rounds(roll, append(log, "four\n"))
    assert list(follow(log, steps, 4)) == ["two", "three", "four"]


def test_lines_written_just_before_the_end_are_not_lost(tmp_path: Path) -> None:
    """When the server has ended the rest of its log is read."""
    log = tmp_path / "log"
    log.touch()
    words = append(log, "last words\n")

    def ended() -> bool:
        assert callable(words)
        words()
        return False

    assert list(follow(log, ended, 0)) == ["last words"]
