"""Values that plugins return, checked before they leave the plugin's process."""

from collections import UserDict, deque
from enum import IntEnum, StrEnum
from types import MappingProxyType

import pytest

from pyconnect_agent.tasks.plugins import plain_task_configs, plain_version
from pyconnect_api import ConnectException
from tests.support.cases import cases


class Mode(StrEnum):
    FAST = "fast"


class Level(IntEnum):
    LOW = 1


class Quoted(str):
    """Like numpy's texts: shows itself as something else."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"np.{self!r}"


def test_mappings_and_texts_of_any_class_become_plain() -> None:
    """Java's null values stay."""
    found = deque(
        [MappingProxyType({Mode.FAST: Quoted("x")}), UserDict({"a": None}), {Quoted("k"): "ä"}]
    )
    configs = plain_task_configs(found, "Source")
    assert configs == ({"fast": "x"}, {"a": None}, {"k": "ä"})
    kinds = {type(text) for config in configs for pair in config.items() for text in pair}
    assert kinds == {str, type(None)}
    assert {type(config) for config in configs} == {dict}
    assert plain_task_configs((), "Source") == ()


@cases(
    "found, text",
    (None, r"Source\.task_configs\(\) returned NoneType, expected a list of mappings"),
    ({"a": "b"}, "returned dict, expected a list of mappings"),
    ("ab", "returned str, expected a list"),
    ((config for config in ()), "returned generator, expected a list"),
    ([{}, "x"], r"Source\.task_configs\(\)\[1\] is of type str, expected a mapping"),
    ([{1: "x"}], r"\[0\]: the key 1 is of type int, expected str"),
    ([{None: "x"}], r"\[0\]: the key None is of type NoneType, expected str"),
    ([{b"k": "x"}], r"\[0\]: the key b'k' is of type bytes, expected str"),
    ([{}, {"port": 5432}], r"\[1\]: the value of 'port' is of type int, expected str"),
    ([{"low": Level.LOW}], r"the value of 'low' is of type .*test_plugin_values\.Level"),
    ([{"list": ["a"]}], "the value of 'list' is of type list, expected str"),
    ([{"file": "caf\udce9"}], "the value of 'file' is not valid Unicode"),
)
def test_unfit_values_are_refused_with_key_and_type(found: object, text: str) -> None:
    """A worker would have stored it, and no worker of the group could have read it."""
    with pytest.raises(ConnectException, match=text):
        plain_task_configs(found, "Source")


def test_a_refusal_does_not_quote_values() -> None:
    """They may be secrets."""
    with pytest.raises(ConnectException) as raised:
        plain_task_configs([{"password": b"sesame"}, {"password": "sesame\ud800"}], "Source")
    assert "sesame" not in str(raised.value)


def test_a_version_is_a_text_or_none() -> None:
    """Some authors return their package's version object."""
    assert plain_version(None, "task") is None
    assert type(plain_version(Mode.FAST, "task")) is str
    with pytest.raises(ConnectException, match=r"version\(\) of the task is of type tuple"):
        plain_version((1, 2), "task")
