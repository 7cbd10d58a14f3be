"""Programs in Java that print what Kafka's own classes do."""

from __future__ import annotations

import subprocess
from pathlib import Path

from pyconnect_sandbox.runtime import KafkaRuntime

LIMIT_S = 200


def printed(runtime: KafkaRuntime, program: Path, *arguments: object) -> list[str]:
    """Run a program of one source file on Kafka's jars; returns its lines."""
    command = [
        str(runtime.java.executable),
        # Quick compilation: no program runs long enough for the better one.
        "-XX:TieredStopAtLevel=1",
        "-Duser.timezone=UTC",
        "-Duser.language=en",
        "-Duser.country=US",
        "-cp",
        f"{runtime.libs}/*",
        str(program),
        *map(str, arguments),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()
