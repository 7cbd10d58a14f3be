"""Kafka's jars really are fetched, one by one, into a cache that has nothing yet."""

import os
from pathlib import Path

import pytest

from pyconnect_sandbox.jars import KAFKA_VERSION, JarCache, find_runtime, known_checksums
from tests.support.commands.processes import RecordedProgress

pytestmark = pytest.mark.kafka


@pytest.mark.long(only=True)
@pytest.mark.timeout(850)
def test_an_empty_cache_is_filled_with_the_known_jars(tmp_path: Path) -> None:
    """All jars come, each with its known checksum; what happens is reported."""
    cache = JarCache(KAFKA_VERSION, known_checksums(), tmp_path)
    progress = RecordedProgress()
    environment = {key: value for key, value in os.environ.items() if key != "KAFKA_HOME"}

    runtime = find_runtime(environment=environment, cache=cache, progress=progress)

    assert {jar.name for jar in runtime.libs.iterdir()} >= set(known_checksums())
    assert cache.is_complete(check_contents=True)
    (message,) = progress.messages
    assert message.startswith(f"fetching Apache Kafka {KAFKA_VERSION} (54 MB), once")
