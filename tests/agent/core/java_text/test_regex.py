"""Java's regular expressions mean the same after translation."""

import os
import re

import pytest

from pyconnect_agent.core.java_text.regex import compile_java_regex
from tests.support.cases import cases
from tests.support.commands.processes import run_python


@cases(
    "pattern, matching, other",
    (r"\Qa.b\E+", "a.bb", "axb"),
    (r"[a-z&&[^aeiou]]+", "bcd", "bad"),
    (r"[^a-c[x-z]]", "m", "x"),
    (r"[]a]+", "]a", "b"),
    (r"[a-]", "-", "b"),
    (r"[\w&&[^\d_]]", "x", "1"),
    (r"[^\W&&[^_]]|no", "no", "no?"),
    (r"\p{Lu}\p{Ll}*", "Äb", "äb"),
    (r"\P{Alpha}", "ä", "a"),
    (r"\p{IsLetter}+", "aä", "1"),
    (r"\p{IsGreek}\p{InGreek}", "\u03b1\u03b2", "\u03b1b"),
    (r"\p{javaUpperCase}\P{L}", "Ä1", "äa"),
    (r"(?i)[b-d]\p{Upper}x", "CaX", "eaX"),
    (r"(?i)[^b-d]", "e", "C"),
    (r"(?i)(a)\1", "aA", "ab"),
    (r"[a||c~~d]+", "|~d", "-"),
    (r"\X", "e\u0301", "ee"),
    (r"a(?i)b|c", "aB", "Ab"),
    (r"a(?i)b|c", "C", "A"),
    (r"(?:a(?i)b)c", "aBc", "aBC"),
    (r"(?i)a(?-i)b", "Ab", "AB"),
    (r"(?i)ä", "ä", "Ä"),
    (r"(?iu)ä", "Ä", "ö"),
    (r"(?x) a b # comment", "ab", "a b"),
    (r"(?<word>\w+)-\k<word>", "a-a", "a-b"),
    (r"(a)(b)\11", "aba1", "aba"),
    (r"a*+a|b", "b", "aa"),
    (r"(?>a|ab)c|x", "ac", "abc"),
    (r"\x41\u0042\x{43}\0104\cM", "ABCD\r", "ABCD"),
    (r"a.c", "a\u2027c", "a\u2028c"),
    (r"(?s)a.c", "a\nc", "ac"),
    (r"(?d)a.c", "a\rc", "a\nc"),
    (r"\h\v\R", " \n\r\n", "a\n\n"),
    (r"\d+", "42", "٣"),
    (r"ab{2,3}?", "abbb", "abbbb"),
    (r"\.\-\$", ".-$", "a-$"),
)
def test_translated_expressions_match_as_in_java(pattern: str, matching: str, other: str) -> None:
    """The expression matches the first text as a whole, and not the second."""
    compiled = compile_java_regex(pattern)
    assert compiled.fullmatch(matching)
    assert not compiled.fullmatch(other)


def test_the_end_of_input_may_be_followed_by_a_line_end() -> None:
    """`$` matches before any of Java's line ends at the end, not only before Python's."""
    assert compile_java_regex("a$").search("a\r\n")
    assert compile_java_regex("a$").search("a\u2028")
    assert not compile_java_regex(r"a\z").search("a\n")
    assert compile_java_regex(r"(?m)^b$").search("a\r\nb\rc")
    assert not compile_java_regex("^b").search("a\nb")


@cases(
    "pattern",
    "[", "[a", "(", ")", "*a", "a{", "a{2", "a{,2}", "{", "[z-a]", "\\", r"\y", r"[\b]",
    r"\p{Nope}", r"\k", r"\x{110000}", "(?U)a", "(?<1>a)", "(?y)", "a**",
)  # fmt: skip
def test_wrong_expressions_and_those_without_counterpart_are_refused(pattern: str) -> None:
    """An expression without an equal meaning in Python is refused, never approximated."""
    with pytest.raises(re.error):
        compile_java_regex(pattern)


def test_errors_show_the_place_as_in_java() -> None:
    """An error has the position, the expression and a mark below the position."""
    with pytest.raises(
        re.error, match=re.escape("Dangling meta character '*' near index 0\n*a\n^")
    ):
        compile_java_regex("*a")


def test_only_children_load_the_library() -> None:
    """A worker has no use for it; the children share that of their fork server."""
    script = (
        "import sys; import pyconnect_agent.worker.lifecycle; print('regex' in sys.modules);"
        "import pyconnect_agent.tasks.preload; print('regex' in sys.modules)"
    )
    done = run_python(["-c", script], os.environ)
    assert (done.returncode, done.stdout.split()) == (0, ["False", "True"]), done.stderr
