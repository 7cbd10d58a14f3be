"""Texts about stages of the worker and ends of processes."""

from pyconnect_agent.core.reporting import (
    Stage,
    describe_exit,
    exit_reason,
    stage_sentence,
    timed_out_text,
)
from tests.support.cases import cases


def test_a_stage_names_its_beginning_and_its_end() -> None:
    """Times are in UTC as Java's Instant prints them, with milliseconds only if not 0."""
    stage = Stage(
        description="reading to the end of the config topic", started_ms=1_700_000_000_000
    )
    assert timed_out_text(stage) == (
        "Request timed out. The worker is currently reading to the end of the config topic, which"
        " began at 2023-11-14T22:13:20Z."
    )
    stage = Stage(description="shutting down", started_ms=1_005, completed_ms=2_000)
    assert stage_sentence(stage) == (
        "The last operation the worker completed was shutting down, which began at"
        " 1970-01-01T00:00:01.005Z and completed at 1970-01-01T00:00:02Z."
    )
    assert timed_out_text(None) == "Request timed out"


@cases(
    "code, text",
    (0, "exited with code 0"),
    (7, "exited with code 7"),
    (-9, "was killed by signal 9 (SIGKILL)"),
    (-63, "was killed by signal 63"),
)
def test_an_exit_is_described(code: int, text: str) -> None:
    """A signal is shown with its name, if it has one."""
    assert describe_exit(code) == text


@cases(
    "code, standard_error, reason",
    (1, "Traceback\n  File x\nValueError: no\n", "ValueError: no"),
    (4, " \n", "its process exited with code 4"),
    (-6, "", "its process was killed by signal 6 (SIGABRT)"),
    (-6, "a\nout of range\n", "its process was killed by signal 6 (SIGABRT): out of range"),
)
def test_there_is_always_a_reason(code: int, standard_error: str, reason: str) -> None:
    """The reason is the last line of standard error, or how the process ended."""
    assert exit_reason(code, standard_error) == reason
