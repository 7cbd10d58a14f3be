"""The program that formats a broker's directory runs once, and within the time of the start."""

from pathlib import Path

import pytest

from pyconnect_sandbox.broker import BrokerConfig, KafkaBroker
from pyconnect_sandbox.errors import ServerNotReady
from pyconnect_sandbox.runtime import Java, KafkaRuntime


def broker_with(java_program: str, directory: Path, timeout_s: float) -> KafkaBroker:
    """Return a broker whose Java is a shell script, which gets Java's arguments."""
    java = directory / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{java_program}\n")
    java.chmod(0o755)
    runtime = KafkaRuntime(java=Java(executable=java, version=17), libs=directory)
    data = directory / "broker"
    data.mkdir()
    return KafkaBroker(BrokerConfig(runtime=runtime, directory=data, start_timeout_s=timeout_s))


def test_a_format_that_takes_too_long_is_reported_with_its_limit(tmp_path: Path) -> None:
    """The limit is that of the start, and the error (exit 124) names it."""
    broker = broker_with("exec sleep 30", tmp_path, 0.5)
    with pytest.raises(ServerNotReady, match=r"did not format .* within 0\.5 s") as caught:
        broker.start()
    assert caught.value.exit_code == 124
    assert "--timeout" in str(caught.value.hint)


def test_the_format_writes_no_class_archive(tmp_path: Path) -> None:
    """Writing an archive takes longer than the program itself, which runs once."""
    arguments = tmp_path / "arguments"
    broker = broker_with(f'echo "$@" >> {arguments}; exit 1', tmp_path, 10)
    with pytest.raises(Exception, match="refused to format"):
        broker.start()
    assert "kafka.tools.StorageTool" in arguments.read_text()
    assert "SharedArchive" not in arguments.read_text()
    assert "ArchiveClasses" not in arguments.read_text()
