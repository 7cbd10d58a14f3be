"""Fixtures for tests on a real broker."""

from pathlib import Path

import pytest

from tests.support.agents.file_stream import FileStreams
from tests.support.audits.sequences import Sequences
from tests.support.chaos.witness import Journal
from tests.support.servers.kafka import SharedBroker


@pytest.fixture
def sequences(kafka_broker: SharedBroker, tmp_path: Path) -> Sequences:
    """A source of numbers, with checks for lost and repeated numbers."""
    return Sequences(kafka_broker.bootstrap_servers, tmp_path)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """Return the journal of the starts and stops of tasks."""
    return Journal(tmp_path / "journal")


@pytest.fixture
def streams(kafka_broker: SharedBroker) -> FileStreams:
    """A file source and a file sink with a topic between them."""
    return FileStreams(kafka_broker.bootstrap_servers)
