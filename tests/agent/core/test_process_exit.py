"""The exit of a process in words."""

from pyconnect_agent.core.reporting import describe_exit, exit_reason
from tests.support.cases import cases


@cases(
    "code, text",
    (0, "exited with code 0"),
    (7, "exited with code 7"),
    (-9, "was killed by signal 9 (SIGKILL)"),
    (-63, "was killed by signal 63"),
)
def test_an_exit_is_described(code: int, text: str) -> None:
    """Signals that have a name are named."""
    assert describe_exit(code) == text


@cases(
    "code, standard_error, reason",
    (1, "Traceback\n  File x\nValueError: no\n", "ValueError: no"),
    (4, " \n", "its process exited with code 4"),
    (-6, "", "its process was killed by signal 6 (SIGABRT)"),
    (-6, "a\nout of range\n", "its process was killed by signal 6 (SIGABRT): out of range"),
)
def test_there_is_always_a_reason(code: int, standard_error: str, reason: str) -> None:
    """Also of a process that wrote nothing."""
    assert exit_reason(code, standard_error) == reason
