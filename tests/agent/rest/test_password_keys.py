"""Password keys of connectors' classes, over a fake herder and a fake clock."""

import asyncio
from typing import Any

import pytest

from pyconnect_agent.core.errors import NotFoundError
from pyconnect_agent.rest.journaling import ASKED_AGAIN_AFTER_S, PasswordKeys
from tests.support.fakes.fake_herder import SOURCE_CLASS, FakeHerder

PLANTED = {"connector.class": SOURCE_CLASS, "pin": "planted-hunter2"}


class Describing(FakeHerder):
    """`fails`: no class can be described. `asked`: the classes, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.plugin_keys = {"pin": "PASSWORD", "topic": "STRING"}
        self.fails = True
        self.asked: list[str] = []

    async def plugin_config(self, plugin: str, version: str | None) -> tuple[dict[str, Any], ...]:
        self.asked.append(plugin)
        if self.fails:
            raise NotFoundError(f"Unknown plugin {plugin}.")
        return await super().plugin_config(plugin, version)


class World:
    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.herder = Describing()
        self.keys = PasswordKeys(lambda: self.now_s)

    def secrets(self) -> set[str]:
        return set(asyncio.run(self.keys.secrets(self.herder)))

    def of(self, connector_class: str) -> frozenset[str]:
        return asyncio.run(self.keys.of(self.herder, {"connector.class": connector_class}))


@pytest.fixture
def world() -> World:
    return World()


def test_a_class_that_cannot_be_described_is_asked_about_again_after_a_wait(world: World) -> None:
    """However many answers need it, and for new connectors of the class too."""
    for count in range(1, 4):
        world.herder.configs = {f"c{number}": PLANTED for number in range(count)}
        assert world.secrets() == set()
        assert world.of(SOURCE_CLASS) == frozenset()
    assert world.herder.asked == [SOURCE_CLASS]
    world.now_s += ASKED_AGAIN_AFTER_S
    world.secrets()
    assert world.herder.asked == [SOURCE_CLASS] * 2


def test_a_described_class_counts_for_the_next_answer(world: World) -> None:
    """Also if another request than the answer's has asked, in the middle of the wait."""
    world.herder.configs = {"c": PLANTED, "d": {**PLANTED, "connector.class": "other"}}
    assert world.secrets() == set()
    world.herder.fails = False
    world.now_s += ASKED_AGAIN_AFTER_S
    assert world.of(SOURCE_CLASS) == {"pin"}
    assert world.of("other") == frozenset()
    assert world.secrets() == {"planted-hunter2"}
    assert world.secrets() == {"planted-hunter2"}
    assert world.herder.asked == [SOURCE_CLASS, "other", SOURCE_CLASS, "other"]


def test_classes_that_cannot_be_described_do_not_pile_up(world: World) -> None:
    """Each is forgotten after its wait."""
    for number in range(100):
        world.of(f"class-{number}")
        world.now_s += ASKED_AGAIN_AFTER_S / 2
    assert len(world.keys._unknown_until_s) <= 2
