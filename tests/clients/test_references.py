"""References to config providers in values."""

from pyconnect_clients.config_values import (
    Variable,
    find_references,
    find_variables,
    replace_variables,
)
from tests.support.cases import cases


@cases(
    "text, variables",
    ("${file:/p:k}", [Variable("file", "/p", "k")]),
    ("${env:K}", [Variable("env", "", "K")]),
    ("${file:/p:k:with:colons}", [Variable("file", "/p", "k:with:colons")]),
    ("a${env:A}b${env:B}", [Variable("env", "", "A"), Variable("env", "", "B")]),
    ("${nothing}", []),
    ("$ {env:A}", []),
)
def test_references_are_split_at_the_first_two_colons(text: str, variables: list[Variable]) -> None:
    """The key may hold colons, the path may not."""
    assert list(find_variables(text)) == variables


def test_unresolved_references_stay_unchanged() -> None:
    """Also where a path is written that is empty."""
    text = "<${file:/p:k}> ${env::K}"
    assert [written for written, _ in find_references(text)] == ["${file:/p:k}", "${env::K}"]
    found = {Variable("file", "/p", "k"): "${env:K}"}
    assert replace_variables(text, found) == "<${env:K}> ${env::K}"
