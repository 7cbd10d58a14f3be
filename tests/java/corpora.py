"""The findings about our plugins in the cases of a corpus that a Java program prints."""

import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyconnect_sandbox.runtime import KafkaRuntime
from tests.java.java_sources import compiled

CASES = 1000
LIMIT_S = 200
DESCRIPTIONS = Path(__file__).parent / "Descriptions.java"


@dataclass(frozen=True, slots=True)
class Judged:
    """Result of the cases of all seeds: differences without a rule, rules without a case."""

    cases: int
    differences: list[str]
    unused: set[str]
    java_version: int


def judge(
    runtime: KafkaRuntime,
    program: Path,
    seeds: Iterable[int],
    directory: Path,
    *,
    corpus: Any,
    deviations: Any,
) -> Judged:
    """Run a program for each seed.

    `corpus` is a module with `java_version` and `cases`, `deviations` one with `RULES`, `reasons`
    and `described`.
    """
    sources = {path.stem: path.read_text() for path in (DESCRIPTIONS, program)}
    classes = compiled(runtime, sources, directory / "classes")
    reasons: Callable[[Any, int], frozenset[str] | None] = deviations.reasons
    count, differences, used, version = 0, list[str](), set[str](), 0
    for seed in seeds:
        lines = printed(runtime, classes, program.stem, str(seed), str(CASES))
        version = corpus.java_version(lines)
        for case in corpus.cases(lines):
            count += 1
            found = reasons(case, version)
            if found is not None and not found:
                differences.append(deviations.described(case))
            used |= found or set()
    unused = {rule.__name__ for rule in deviations.RULES} - used
    return Judged(count, differences, unused, version)


def printed(runtime: KafkaRuntime, classes: Path, program: str, *arguments: str) -> list[str]:
    """Run a program with Kafka's jars; returns its lines."""
    command = [
        str(runtime.java.executable),
        # Quick compilation: no program runs long enough for the better one.
        "-XX:TieredStopAtLevel=1",
        "-Duser.timezone=UTC",
        "-Duser.language=en",
        "-Duser.country=US",
        "-cp",
        f"{classes}:{runtime.libs}/*",
        program,
        *arguments,
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()
