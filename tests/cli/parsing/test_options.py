"""Words of a verb before the parser reads them."""

from pyconnect_cli.parsing.options import without_bare_wait
from tests.support.cases import cases


@cases(
    "words, left, alone",
    (["a", "--wait"], ["a"], True),
    (["--wait", "a"], ["a"], True),
    (["--wait", "--yes"], ["--yes"], True),
    (["--wait", "running", "a"], ["--wait", "running", "a"], False),
    (["--wait=RUNNING"], ["--wait=RUNNING"], False),
    (["--wait", "--", "RUNNING"], ["--", "RUNNING"], True),
    (["a", "--", "--wait"], ["a", "--", "--wait"], False),
)
def test_a_bare_wait_takes_no_other_word(words: list[str], left: list[str], alone: bool) -> None:
    """A connector's name after `--wait` stays a name."""
    assert without_bare_wait(words) == (left, alone)
