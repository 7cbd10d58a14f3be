"""Jobs of real child processes without Kafka: configs, plugins and changes of offsets."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pyconnect_agent.core.errors import (
    BadRequestError,
    InternalError,
    KafkaError,
    NotFoundError,
    RequestError,
    RequestTimedOutError,
)
from tests.support.cases import cases
from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import ChildrenWorld, children_world
from tests.support.plugins.bad_plugins import OddKeySource, bad_source
from tests.support.plugins.offset_hooks import HOOK_SINK, HOOK_SOURCE

pytestmark = pytest.mark.wire

KEY_A, KEY_B = b'["c",{"number":"a"}]', b'["c",{"number":"b"}]'
STORED = {KEY_A: b'{"last":1}', KEY_B: b'{"last":2}'}
ASKED = (({"number": "a"}, {"last": 7}), ({"number": "new"}, {"last": 8}))
TIMEOUT_MS = 30_000


def config(hook: str = "true", connector_class: str = HOOK_SOURCE, **more: str) -> dict[str, str]:
    return {"name": "c", "connector.class": connector_class, "hook": hook, **more}


@asynccontextmanager
async def stored_world() -> AsyncIterator[ChildrenWorld]:
    """Children of a worker whose offset store has offsets."""
    async with children_world() as world:
        world.store.entries.update(STORED)
        yield world


async def prepare(
    world: ChildrenWorld,
    settings: Mapping[str, str],
    offsets: Any = ASKED,
    timeout_ms: int = TIMEOUT_MS,
) -> bool:
    text = None
    if offsets is not None:
        entries = [{"partition": partition, "offset": offset} for partition, offset in offsets]
        text = json.dumps({"offsets": entries}).encode()
    return await world.children.offset_changes.prepare("c", settings, text, timeout_ms)


async def refusal(world: ChildrenWorld, settings: Mapping[str, str], **more: Any) -> RequestError:
    with pytest.raises(RequestError) as refused:
        await prepare(world, settings, **more)
    return refused.value


@cases("hook", "true", "false", "none")
async def test_accepted_offsets_are_written_after_confirmation(hook: str, tmp_path: Path) -> None:
    """Accepted offsets are written only after the confirmation, and other partitions stay."""
    told = tmp_path / "told"

    async with stored_world() as world:
        assert await prepare(world, config(hook, told=str(told))) is (hook == "true")
        assert world.store.entries == STORED
        await world.children.offset_changes.commit("c")
        new = b'["c",{"number":"new"}]'
        assert world.store.entries == {**STORED, KEY_A: b'{"last":7}', new: b'{"last":8}'}
    assert json.loads(told.read_text()) == [list(pair) for pair in ASKED]


async def test_a_reset_names_every_known_partition_to_the_connector(tmp_path: Path) -> None:
    """A repeated reset does no harm, as the connector is then asked about no partition."""
    told = tmp_path / "told"

    async with stored_world() as world:
        for left in (STORED, {}):
            assert world.store.entries == left
            assert await prepare(world, config(told=str(told)), None) is True
            await world.children.offset_changes.commit("c")
    first, second = (json.loads(line) for line in told.read_text().splitlines())
    assert sorted(first, key=str) == [[{"number": "a"}, None], [{"number": "b"}, None]]
    assert second == []


@cases(
    "hook, error, text",
    (
        "unsupported",
        InternalError,
        (
            "Failed to modify offsets for connector c because it doesn't support external"
            " modification of offsets"
        ),
    ),
    ("refuse", InternalError, "The connector refuses"),
    ("absent", NotFoundError, "The external system has no such place"),
    ("break", InternalError, "Failed to modify offsets for source connector c"),
    ("exit", InternalError, "Failed to modify offsets for source connector c"),
    (
        "die",
        InternalError,
        (
            "Failed to modify offsets for source connector c. The offset change process exited"
            " with code 3. It left no traceback. Plugin code may have called os._exit, or a"
            " native library exit."
        ),
    ),
)
@cases("offsets", ASKED, None, ids=["alter", "reset"])
async def test_a_refusal_of_the_connector_changes_nothing(
    hook: str, error: type[RequestError], text: str, offsets: Any
) -> None:
    """A refused change keeps the text of Connect's exceptions; other errors are not shown."""
    async with stored_world() as world:
        refused = await refusal(world, config(hook), offsets=offsets)
        assert (type(refused), str(refused)) == (error, text)
        assert world.store.entries == STORED


async def test_a_connector_that_hangs_is_given_up() -> None:
    """A hanging connector's process is killed, and the answer has its stack."""
    partition = {"number": "a", "kafka_topic": "t", "kafka_partition": 0}
    offsets = ((partition, {"last": 1, "kafka_offset": 1}),)

    async def told(connector_class: str) -> str:
        settings = config("hang", connector_class, topics="t")
        async with stored_world() as world:
            refused = await refusal(world, settings, offsets=offsets, timeout_ms=10_000)
            assert world.store.entries == STORED
            return str(refused)

    text = "Timed out while calling the 'alterOffsets' method for {} connector c"
    found = await asyncio.gather(told(HOOK_SOURCE), told(HOOK_SINK))
    assert found == [text.format("source"), text.format("sink")]


async def test_an_abandoned_change_is_never_written() -> None:
    """An abandoned change is not written, and its late confirmation is refused."""
    async with stored_world() as world:
        await prepare(world, config())
        world.children.offset_changes.abandon("c")
        with pytest.raises(InternalError):
            await world.children.offset_changes.commit("c")
        assert world.store.entries == STORED


async def test_a_second_change_ends_the_first() -> None:
    """The offsets prepared for the first change are never written."""
    async with stored_world() as world:
        first = asyncio.create_task(prepare(world, config("hang")))
        await asyncio.sleep(0)
        await prepare(world, config(), ((({"number": "b"}), {"last": 9}),))
        await eventually_async(first.done)
        assert isinstance(first.exception(), InternalError)
        await world.children.offset_changes.commit("c")
        assert world.store.entries == {**STORED, KEY_B: b'{"last":9}'}


async def test_a_failing_store_is_reported_with_kafka_connects_text() -> None:
    """A failing store gives Kafka Connect's text before the check and at the write."""
    text = "Failed to modify offsets for source connector c"

    async with stored_world() as world:
        world.store.failure = KafkaError("on purpose")
        assert str(await refusal(world, config(), offsets=None)) == text
        world.store.failure = None
        await prepare(world, config())
        world.store.failure = KafkaError("on purpose")
        with pytest.raises(InternalError, match=f"^{text}$"):
            await world.children.offset_changes.commit("c")
        assert world.store.entries == STORED


async def test_writes_that_are_lost_are_noticed() -> None:
    """Lost writes are found, because the stored offsets are read back."""
    async with stored_world() as world:
        await prepare(world, config())
        world.store.write = lambda entries, timeout_ms: None  # type: ignore[method-assign]
        with pytest.raises(InternalError, match="Failed to modify offsets for source connector c"):
            await world.children.offset_changes.commit("c")


async def test_a_sinks_offsets_are_checked_before_the_connector_is_asked(tmp_path: Path) -> None:
    """A wrong offset gets a 400 whatever the connector would answer."""
    settings = config("refuse", HOOK_SINK, topics="t", told=str(tmp_path / "told"))

    async with stored_world() as world:
        refused = await refusal(world, settings, offsets=(({"kafka_topic": "t"}, None),))
        assert isinstance(refused, BadRequestError)
        assert not (tmp_path / "told").exists()


@cases(
    "settings, named",
    (
        {"security.protocol": "SSL", "ssl.keystore.location": "/no/store.p12"},
        "ssl.keystore.location: /no/store.p12",
    ),
)
async def test_a_setting_that_keeps_single_offsets_from_being_deleted_is_named(
    settings: Mapping[str, str], named: str, tmp_path: Path
) -> None:
    """A wrong setting of the admin client is named before any partition is changed."""
    overrides = {f"admin.override.{key}": value for key, value in settings.items()}
    told = tmp_path / "told"
    asked = config(connector_class=HOOK_SINK, topics="t", told=str(told), **overrides)
    offsets = tuple(
        ({"kafka_topic": "t", "kafka_partition": partition}, offset)
        for partition, offset in enumerate((None, {"kafka_offset": 1}))
    )

    async with stored_world() as world:
        refused = await refusal(world, asked, offsets=offsets)
        assert str(refused).startswith("Failed to alter consumer group offsets for connector c: ")
        assert named in str(refused)
        assert not told.exists()


async def test_nested_values_are_refused_before_the_connector_is_asked(tmp_path: Path) -> None:
    """Nested values in offsets are refused with Connect's text, which names the field."""
    settings = config(told=str(tmp_path / "told"))

    async with stored_world() as world:
        refused = await refusal(world, settings, offsets=(({"a": [1]}, {"last": 1}),))
        expected = "Offsets may only contain primitive types as values, but field a contains ARRAY"
        assert str(refused) == expected
        assert not (tmp_path / "told").exists()


async def test_validation_runs_plugin_code_in_a_child() -> None:
    """An error, a death or a hang of the plugin does not harm the worker process."""
    async with children_world() as w:
        infos = await w.children.jobs.validate({**bad_source(), "tasks.max": "x"}, 60_000)
        errors = {c.value.name: c.value.errors for c in infos.configs if c.value is not None}
        assert any("Not a number of type INT" in text for text in errors["tasks.max"])
        with pytest.raises(InternalError, match="ValueError: no good"):
            await w.children.jobs.validate(bad_source(validate="raise"), 60_000)
        overridden = {**bad_source(), "producer.override.batch.size": "x"}
        with pytest.raises(InternalError, match=r"^Invalid value x for") as raised:
            await w.children.jobs.validate(overridden, 60_000)
        assert raised.value.cause_class == "org.apache.kafka.common.config.ConfigException"
        with pytest.raises(BadRequestError, match=r"returned a OSError as .* 'start'"):
            await w.children.jobs.validate(bad_source(validate="odd"), 60_000)
        with pytest.raises(InternalError, match="exited with code 7"):
            await w.children.jobs.validate(bad_source(validate="exit"), 60_000)
        with pytest.raises(RequestTimedOutError, match="did not answer within 500 ms"):
            await w.children.jobs.validate(bad_source(validate="hang"), 500)
        with pytest.raises(BadRequestError, match="contains no connector type"):
            await w.children.jobs.validate({"name": "c"}, 60_000)


async def test_an_answer_that_cannot_be_sent_is_refused_with_the_reason() -> None:
    """A value out of range in a plugin's key definition is refused with the reason."""
    async with children_world() as w:
        name = f"{OddKeySource.__module__}.{OddKeySource.__qualname__}"
        text = "The plugin's ConfigValidated cannot be sent: can't serialize ints"
        with pytest.raises(InternalError, match=text):
            await w.children.jobs.validate({**bad_source(), "connector.class": name}, 60_000)


async def test_plugins_are_described_by_name() -> None:
    """A plugin's own keys come first, and unknown names are not found."""
    async with children_world() as w:
        keys = await w.children.jobs.plugin_config("FileStreamSource", None)
        assert [key["name"] for key in keys][:3] == ["file", "topic", "batch.size"]
        with pytest.raises(NotFoundError, match=r"Unknown plugin Nothing\."):
            await w.children.jobs.plugin_config("Nothing", None)
