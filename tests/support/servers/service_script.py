"""A stand-in for a host's service manager: `service_script.py DIRECTORY VERB [PHASE]`.

The directory holds `worker.properties`, `command.json` (the argv that runs the worker) and the pid.
Verbs: configure PHASE, show, stop (SIGTERM, wait, kill a Java worker that does not end),
start, restart, replace (from then on the argv of `replacement.json` runs).
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

KEY = "exactly.once.source.support"
STOP_S = 60


def main(directory: Path, verb: str, phase: str = "") -> None:
    file = directory / "worker.properties"
    lines = [line for line in file.read_text().splitlines() if not line.startswith(KEY)]
    match verb:
        case "configure":
            file.write_text("\n".join([*lines, f"{KEY}={phase}"]) + "\n")
        case "show":
            found = [line for line in file.read_text().splitlines() if line.startswith(KEY)]
            sys.stdout.write(found[-1].partition("=")[2] if found else "")
        case "stop":
            stop(directory)
        case "start":
            start(directory)
        case "restart":
            stop(directory)
            start(directory)
        case "replace":
            stop(directory)
            (directory / "replacement.json").replace(directory / "command.json")
            start(directory)
        case _:
            sys.exit(f"no such verb: {verb}")


def start(directory: Path) -> None:
    command = json.loads((directory / "command.json").read_text())
    with (directory / "service.out").open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    (directory / "pid").write_text(str(process.pid))


def stop(directory: Path, number: signal.Signals = signal.SIGTERM) -> None:
    pid = running(directory)
    if pid is None:
        return
    with suppress(ProcessLookupError):
        os.killpg(pid, number)
    if not has_ended(pid):
        # Apache's worker may wait for Jetty endlessly; service managers kill it then.
        if Path(json.loads((directory / "command.json").read_text())[0]).name != "java":
            sys.exit(f"{pid} does not end")
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        has_ended(pid)
    (directory / "pid").unlink()


def has_ended(pid: int) -> bool:
    """Wait for the end of a process, at most `STOP_S`."""
    until = time.monotonic() + STOP_S
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.05)
    return not is_alive(pid)


def running(directory: Path) -> int | None:
    file = directory / "pid"
    return int(file.read_text()) if file.exists() else None


def is_alive(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
