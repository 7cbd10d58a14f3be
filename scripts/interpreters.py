"""Install the wheel for each Python of this machine and move records with it, exactly once.

Run by scripts/interpreters. Every released CPython that `requires-python` allows must pass; one
that cannot make virtual environments fails. Files and logs of a run are in out/interpreters.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from confluent_kafka import Consumer, TopicPartition

from pyconnect_sandbox.broker import BrokerConfig, KafkaBroker
from pyconnect_sandbox.connect_worker import AgentProcess, WorkerLaunch, worker_properties
from pyconnect_sandbox.errors import SandboxError
from pyconnect_sandbox.jars import find_runtime, on_stderr

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "out" / "interpreters"
LINES = 2_000
TIMEOUT_S = 300.0
AT_ONCE = 2
"""Runs at a time: one installs while another waits for its broker."""

IDENTITY = """\
import json, os, platform, sys
print(json.dumps([
    platform.python_implementation(), sys.version_info[:3], sys.version_info.releaselevel,
    os.path.realpath(sys.base_prefix), sys.executable,
]))
"""
MSK_TOKEN = """\
import base64
from pyconnect_clients.connections import with_token_callback
module = "software.amazon.msk.auth.iam.IAMLoginModule required;"
broker = "b-1.c.abc.c2.kafka.eu-west-1.amazonaws.com:9098"
login = {"sasl.mechanism": "AWS_MSK_IAM", "sasl.jaas.config": module}
text = with_token_callback({**login, "bootstrap.servers": broker})["oauth_cb"]("")[0]
print(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode())
"""
MSK_KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "not-a-secret"}
JSON_CONVERTER = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


class RunFailed(Exception):
    """What went wrong with one interpreter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A CPython of this machine."""

    version: tuple[int, int, int]
    prefix: str
    executable: Path

    @property
    def title(self) -> str:
        return ".".join(map(str, self.version))


class InstalledAgent(AgentProcess):
    """`pyconnect-agent` of an environment, without anything of this checkout."""

    def __init__(self, config: WorkerLaunch, environment: Path) -> None:
        super().__init__(config)
        self._bin = environment / "bin"

    def _environment(self) -> Mapping[str, str]:
        return bare_environment(self.directory)

    def _command(self, worker_file: Path, connector_files: Sequence[Path]) -> Sequence[str]:
        return [str(self._bin / "pyconnect-agent"), *map(str, (worker_file, *connector_files))]


def bare_environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}


def lowest_supported() -> tuple[int, int]:
    """Return the minor version that `requires-python` begins with."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = re.fullmatch(r">=(\d+)\.(\d+)", project["requires-python"])
    assert found is not None
    return int(found[1]), int(found[2])


def candidates() -> Iterable[Path]:
    """Return what looks like an interpreter; pyenv's shims run one version, so look below it."""
    directories = [
        *map(Path, os.get_exec_path()),
        *(Path(name) for name in ("/usr/bin", "/usr/local/bin")),
        *sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/*/bin")),
    ]
    for directory in directories:
        for path in sorted(directory.glob("python3*")):
            if re.fullmatch(r"python3(\.\d+)?", path.name):
                yield path


def identify(path: Path) -> Interpreter | None:
    """Return what `path` runs; None when it is no released CPython."""
    try:
        done = subprocess.run(
            [path, "-c", IDENTITY], capture_output=True, text=True, timeout=30, check=True
        )
        implementation, version, level, prefix, executable = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    if implementation != "CPython" or level != "final":
        return None
    major, minor, micro = version
    return Interpreter(version=(major, minor, micro), prefix=prefix, executable=Path(executable))


def find_interpreters(named: Sequence[Path]) -> list[Interpreter]:
    """Return each installation once, the oldest first; without names those that are supported."""
    found: dict[tuple[str, tuple[int, int, int]], Interpreter] = {}
    for path in named or candidates():
        interpreter = identify(path)
        if interpreter is None and named:
            raise SystemExit(f"error: {path} runs no released CPython")
        if interpreter and (named or interpreter.version[:2] >= lowest_supported()):
            found.setdefault((interpreter.prefix, interpreter.version), interpreter)
    return sorted(found.values(), key=lambda each: each.version)


def run(command: Sequence[str | Path], what: str, environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        command, cwd=OUT, env=environment, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL, timeout=600,
    )  # fmt: skip
    if done.returncode != 0:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise RunFailed(f"{what} ended with {done.returncode}: {' / '.join(lines[-4:])}")
    return done.stdout


def build_wheel() -> Path:
    directory = OUT / "wheel"
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = directory.iterdir()
    return wheel


def install(interpreter: Interpreter, wheel: Path, requirements: Path, directory: Path) -> Path:
    """Return a new environment with the pinned requirements and the wheel."""
    environment = directory / "environment"
    inherited = dict(os.environ)
    inherited.pop("PYTHONPATH", None)
    check = "import ensurepip, venv"
    try:
        run([interpreter.executable, "-c", check], check, inherited)
    except RunFailed as error:
        minor = ".".join(map(str, interpreter.version[:2]))
        raise RunFailed(
            f"it cannot make virtual environments (Debian/Ubuntu: python{minor}-venv)"
        ) from error
    run([interpreter.executable, "-m", "venv", environment], "making the environment", inherited)
    pip = [environment / "bin" / "python", "-m", "pip", "-q", "--disable-pip-version-check"]
    run([*pip, "install", "--require-hashes", "-r", requirements], "pip", inherited)
    run([*pip, "install", "--no-deps", wheel], "pip", inherited)
    run([*pip, "check"], "pip check", inherited)
    return environment


def connectors(source: Path, sink: Path, topic: str) -> dict[str, dict[str, str]]:
    """Return a source that wraps lines in JSON and a sink that takes them out again."""
    return {
        f"{topic}-source": {
            "connector.class": "FileStreamSource",
            "file": str(source),
            "topic": topic,
            "exactly.once.support": "required",
            "transforms": "wrap",
            "transforms.wrap.type": "org.apache.kafka.connect.transforms.HoistField$Value",
            "transforms.wrap.field": "line",
            **JSON_CONVERTER,
        },
        f"{topic}-sink": {
            "connector.class": "FileStreamSink",
            "file": str(sink),
            "topics": topic,
            "transforms": "unwrap",
            "transforms.unwrap.type": "org.apache.kafka.connect.transforms.ExtractField$Value",
            "transforms.unwrap.field": "line",
            **JSON_CONVERTER,
        },
    }


def move_records(environment: Path, bootstrap_servers: str, directory: Path, group: str) -> None:
    """Run an agent and its two connectors, and compare what came out."""
    source, sink = directory / "source.txt", directory / "sink.txt"
    source.write_text("".join(f"line {number} äöü\n" for number in range(LINES)), "utf-8")
    properties = worker_properties(bootstrap_servers, group)
    config = WorkerLaunch(
        directory=directory / "agent",
        properties={**properties, "exactly.once.source.support": "enabled"},
        hold_file=directory / "hold",
    )
    bare = bare_environment(directory)
    pyconnect = environment / "bin" / "pyconnect"
    run([pyconnect, "--help"], "pyconnect --help", bare)
    with InstalledAgent(config, environment) as agent:
        for name, connector in connectors(source, sink, group).items():
            file = directory / f"{name}.json"
            file.write_text(json.dumps(connector))
            create = ("connectors", "create", name, "-f", str(file), "--wait", "RUNNING")
            run(
                [pyconnect, "--url", agent.url, *create],
                f"pyconnect connectors create {name}",
                bare,
            )
        deadline = time.monotonic() + TIMEOUT_S
        while not sink.exists() or sink.stat().st_size < source.stat().st_size:
            if time.monotonic() > deadline:
                raise RunFailed(f"not all lines arrived within {TIMEOUT_S:g} s")
            time.sleep(0.1)
    if sink.read_bytes() != source.read_bytes():
        raise RunFailed("the sink's file is not the source's")
    compare_topic(bootstrap_servers, group, source.read_text("utf-8").splitlines())


def compare_topic(bootstrap_servers: str, topic: str, lines: Sequence[str]) -> None:
    """Check that committed records are the lines as JSON, each once, and were in transactions."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "interpreters",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    values: list[object] = []
    try:
        end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1]
        consumer.assign([TopicPartition(topic, 0, 0)])
        while (message := consumer.poll(30)) is not None and message.error() is None:
            values.append(json.loads(message.value() or b"null"))
    finally:
        consumer.close()
    if values != [{"line": line} for line in lines]:
        raise RunFailed(f"the topic has {len(values)} records that are not the {len(lines)} lines")
    if end <= len(lines):
        raise RunFailed("the topic has no transaction's end: the source was not exactly-once")


def sign_for_msk(environment: Path, directory: Path) -> None:
    """Check the token that AWS's signer makes: a signed request to connect."""
    bare = bare_environment(directory) | MSK_KEYS
    url = urlsplit(run([environment / "bin" / "python", "-c", MSK_TOKEN], "AWS's signer", bare))
    query = parse_qs(url.query)
    scope = query.get("X-Amz-Credential", [""])[0].split("/")
    if (
        url.netloc != "kafka.eu-west-1.amazonaws.com"
        or query.get("Action") != ["kafka-cluster:Connect"]
        or (scope[0], *scope[2:]) != ("AKIDEXAMPLE", "eu-west-1", "kafka-cluster", "aws4_request")
        or not re.fullmatch("[0-9a-f]{64}", query.get("X-Amz-Signature", [""])[0])
    ):
        raise RunFailed(f"AWS's signer made another token: {url.netloc}, {sorted(query)}")


class Trial:
    """Proves interpreters on one broker."""

    def __init__(
        self, wheel: Path, requirements: Path, bootstrap_servers: str, *, all_extras: bool
    ) -> None:
        self._wheel = wheel
        self._requirements = requirements
        self._all_extras = all_extras
        self._bootstrap_servers = bootstrap_servers
        self._printing = threading.Lock()

    def prove(self, numbered: tuple[int, Interpreter]) -> bool:
        """Print the verdict about one interpreter; return whether it works."""
        number, interpreter = numbered
        group = f"python-{interpreter.title}-{number}"
        directory = OUT / group
        directory.mkdir()
        began_s = time.monotonic()
        fault = None
        try:
            environment = install(interpreter, self._wheel, self._requirements, directory)
            installed_s = time.monotonic() - began_s
            if self._all_extras:
                sign_for_msk(environment, directory)
            move_records(environment, self._bootstrap_servers, directory, group)
        except (RunFailed, SandboxError, OSError, subprocess.SubprocessError) as error:
            fault = error
        took_s = time.monotonic() - began_s
        with self._printing:
            if fault is None:
                times = f"{took_s:.0f} s, {installed_s:.0f} of them to install"
                print(f"ok    {interpreter.title} ({interpreter.executable}): {times}", flush=True)
            else:
                print(f"FAIL  {interpreter.title} ({interpreter.executable}): {fault}", flush=True)
                print(f"      see {directory.relative_to(ROOT)}", flush=True)
        return fault is None


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/interpreters", description=__doc__)
    parser.add_argument("python", nargs="*", type=Path)
    parser.add_argument("--lowest", action="store_true")
    options = parser.parse_args()
    interpreters = find_interpreters(options.python)
    if not interpreters:
        print("error: no supported Python was found", file=sys.stderr)
        return 1
    if options.lowest:
        interpreters = interpreters[:1]
    requirements = ROOT / "requirements" / ("lowest.txt" if options.lowest else "runtime.txt")
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    runtime = find_runtime(progress=on_stderr)
    broker = KafkaBroker(
        BrokerConfig(runtime=runtime, directory=OUT / "broker", hold_file=OUT / "hold")
    )
    with broker:
        trial = Trial(
            build_wheel(), requirements, broker.bootstrap_servers, all_extras=options.lowest
        )
        with ThreadPoolExecutor(AT_ONCE) as pool:
            results = list(pool.map(trial.prove, enumerate(interpreters)))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
