"""Login entries in the syntax of JAAS files."""

import pytest

from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.jaas import parse_jaas
from tests.support.cases import cases


@cases(
    "options, password",
    ('username="u" password="a\\\\b\\"c"', 'a\\b"c'),
    ("password='it is \"mine\"' username='u'", 'it is "mine"'), ("username=u password=p", "p"),
    ('username="u"\n  password="b c;"', "b c;"), ('username="u" password=""', ""),
)  # fmt: skip
def test_options_are_unquoted_as_java_does(options: str, password: str) -> None:
    """A backslash escapes the next character, in both kinds of quotes."""
    entry = parse_jaas(f"org.apache.PlainLoginModule required {options};")
    expected = ("PlainLoginModule", {"username": "u", "password": password})
    assert (entry.simple_name, entry.options) == expected
    assert "password" not in repr(entry)


@cases(
    "text",
    ";", "SECRET required", "Module SECRET a=b;", "Module required SECRET=;",
    'M required a="SECRET;',
)  # fmt: skip
def test_broken_entries_are_refused_without_showing_them(text: str) -> None:
    """The error names the fault without the entry's text."""
    with pytest.raises(ClientPropertyError, match="hidden") as refused:
        parse_jaas(text)
    assert "SECRET" not in str(refused.value)
