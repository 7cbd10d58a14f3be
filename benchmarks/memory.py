"""Memory of a worker and everything it has started, as the kernel shares it out (PSS)."""

import os
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

MIB = 1024 * 1024
SAMPLE_S = 0.5


def family(pid: int) -> list[psutil.Process]:
    """Return a process and its descendants: worker process, fork server, children; a JVM is alone.

    A Java process that connectors share may have outlived the one that started it. Its directory
    (`java_processes/shared.py`) has the number of the fork server in its name.
    """
    parent = psutil.Process(pid)
    found = [parent, *parent.children(recursive=True)]
    names = tuple(f"shared-{os.geteuid()}-{each.pid}/" for each in found)
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or ()
        if process not in found and any(name in word for word in words for name in names):
            found.append(process)
    return found


def pss_bytes(pid: int) -> int:
    """Return a process's memory, shared pages counted once; 0 for a process that has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def family_pss(pid: int) -> tuple[int, ...]:
    """Return the bytes of each process, the parent first; empty if the parent has ended."""
    with suppress(psutil.NoSuchProcess):
        return tuple(pss_bytes(process.pid) for process in family(pid))
    return ()


def described(sizes: tuple[int, ...]) -> str:
    each = " + ".join(f"{size / MIB:.0f}" for size in sizes)
    return f"{sum(sizes) / MIB:.0f} MiB ({each})"


class Peak:
    """A sampler of a family's memory; `sizes` belong to the largest sum that was seen."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.sizes: tuple[int, ...] = ()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(SAMPLE_S):
            self.sizes = max(self.sizes, family_pss(self._pid), key=sum)
