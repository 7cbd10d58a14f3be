"""Parts of the Java host by themselves: columns of batches, JSON, and class loaders."""

import contextlib
import json
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pyconnect_agent.java_processes.frames import (
    decode_source,
    encode_sink,
    json_bytes,
    unpack_headers,
)
from pyconnect_agent.java_processes.installation import find_installation
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.java.java_sources import compiled

pytestmark = pytest.mark.java

DATA = st.none() | st.binary(max_size=9)
HEADERS = st.none() | st.lists(st.tuples(st.text(max_size=5), DATA), min_size=1, max_size=3)
ROW = st.tuples(
    st.sampled_from(["a", "b", "\u00e4"]),
    st.integers(0, 5),
    st.integers(0, 2**62),
    st.tuples(st.integers(0, 2), st.integers(1, 2**60)),
    DATA,
    DATA,
    HEADERS,
)
VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda items: (
        st.lists(items, max_size=3) | st.dictionaries(st.text(max_size=3), items, max_size=3)
    ),
    max_leaves=8,
)
LARGE = ("a", 0, 1, (1, 1), None, bytes(40 << 20), [("h", None)])
OTHERS = ("Plugin", "Library")
LENGTH = struct.Struct(">i")


@pytest.fixture(scope="module")
def command(kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs `HostTest`, a class in the host's package."""
    installation = find_installation({})
    classes = tmp_path_factory.mktemp("classes")
    source = Path(__file__).with_name("HostTest.java")
    path = f"{installation.class_path}:{classes}"
    javac = kafka_runtime.java.executable.resolve().with_name("javac")
    subprocess.run(
        [javac, "-J-XX:TieredStopAtLevel=1", "-nowarn", "-cp", path, "-d", classes, source],
        check=True,
    )
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return [installation.java, *options, "-cp", path, "io.pyconnect.host.HostTest"]


@pytest.fixture(scope="module")
def columns(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    with echoing(command, "columns") as process:
        yield process


@pytest.fixture(scope="module")
def texts(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    with echoing(command, "json") as process:
        yield process


@contextlib.contextmanager
def echoing(command: list[str], part: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [*command, part], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield process
        process.kill()


def echoed(process: subprocess.Popen[bytes], payload: bytes) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(LENGTH.pack(len(payload)) + payload)
    process.stdin.flush()
    (length,) = LENGTH.unpack(process.stdout.read(LENGTH.size))
    return process.stdout.read(length)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(ROW, max_size=8))
@example([LARGE, ("b", 1, 2, (0, 5), b"", b"", None)])
@example([("a", 0, n, (1, 1), b"k%d" % n, None, None) for n in range(3000)])
def test_columns_survive_java(
    columns: subprocess.Popen[bytes], rows: list[tuple[object, ...]]
) -> None:
    """Java keeps null and empty values, headers, values larger than a frame, and many records."""
    topics, partitions, offsets, timestamps, keys, values, headers = (
        [row[column] for row in rows] for column in range(7)
    )
    kinds, times = zip(*timestamps, strict=True) if rows else ((), ())  # type: ignore[misc]  # pairs
    batch = encode_sink(
        names=list(dict.fromkeys(topics)),  # type: ignore[arg-type]  # columns of `ROW`
        topics=topics,  # type: ignore[arg-type]
        partitions=partitions,  # type: ignore[arg-type]
        offsets=offsets,  # type: ignore[arg-type]
        timestamps=times,
        types=kinds,
        keys=keys,  # type: ignore[arg-type]
        values=values,  # type: ignore[arg-type]
        headers=headers,  # type: ignore[arg-type]
    )
    found = decode_source(memoryview(echoed(columns, b"".join(batch.payload()))))
    types = [found.facts["places"][place]["type"] for place in found.places]
    assert list(zip(types, found.timestamps, strict=True)) == timestamps
    assert list(found.topics) == topics
    assert list(found.partitions) == partitions
    numbers = (int(str(offset)) for offset in offsets)
    places = [None if number % 3 == 0 else b'{"at":%d}' % number for number in numbers]
    assert list(found.offsets) == places
    assert list(found.keys) == keys
    assert list(found.values) == values
    packed = found.headers or [None] * len(rows)
    assert [unpack_headers(each) or None for each in packed] == headers


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(VALUE)
@example({"a": [{}, [], "\u00e4\U0001f600", 2**31, -(2**63), 0.1, True, None]})
def test_json_survives_java(texts: subprocess.Popen[bytes], value: object) -> None:
    assert json.loads(echoed(texts, json_bytes(value))) == value


def test_json_of_javas_own_types(command: list[str]) -> None:
    """The host writes numbers of all sizes, bytes as Base64, and other objects as their text."""
    done = subprocess.run([*command, "types"], capture_output=True, text=True, check=True)
    numbers = '1,2,3,4,1.5,2.5,"NaN",100000000000000000000,0.10'
    assert done.stdout == f'[{numbers},"AQI=","AQI=","NEW",{{"1":[]}}]'


def test_loaders(command: list[str], kafka_runtime: KafkaRuntime, tmp_path: Path) -> None:
    """Kafka's API and SLF4J come from the worker, all other classes from the location first.

    Plugins of another location are found, but not its libraries, nor a plugin that is gone.
    """
    own = {"lib.Own": "package lib; public class Own {}"}
    location = [f"{compiled(kafka_runtime, own, tmp_path / 'own')}/"]
    others = {f"other.{name}": f"package other; public class {name} {{}}" for name in OTHERS}
    other = f"{compiled(kafka_runtime, others, tmp_path / 'other')}/"
    locations = json.dumps([{"jars": [other], "classes": ["other.Plugin", "other.Gone"]}])
    for name in ("connect-api", "connect-json", "slf4j-api", "jackson-databind"):
        (jar,) = kafka_runtime.libs.glob(f"{name}-[0-9]*.jar")
        location.append(shutil.copy(jar, tmp_path))
    done = subprocess.run(
        [*command, "loaders", locations, *location], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "lib.Own plugin",
        "other.Plugin elsewhere",
        "other.Library nowhere",
        "other.Gone nowhere",
        "org.apache.kafka.connect.data.Schema worker",
        "org.apache.kafka.connect.json.JsonConverter plugin",
        "org.slf4j.Logger worker",
        "com.fasterxml.jackson.databind.JsonNode plugin",
        "same true",
    ]
