"""Lines that describe the surroundings on which a benchmark's figures depend."""

import os
import platform
import re
import subprocess
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pyconnect_sandbox.errors import JavaUnavailable
from pyconnect_sandbox.runtime import find_java

CLIENTS = ("confluent-kafka", "kafka-python", "pyspark")
GIB = 1024**3


def describe() -> str:
    """Return machine, Python with its build's optimisation, Java, and the clients' versions."""
    return "\n".join(
        (
            f"machine:  {_machine()}",
            f"Python:   {platform.python_version()}, {_optimisation()} ({sys.executable})",
            f"Java:     {_java()}",
            f"packages: {', '.join(filter(None, map(_package, CLIENTS)))}",
        )
    )


def _machine() -> str:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
    return (
        f"{usable} of {os.cpu_count()} processors ({_processor()}), {memory:.1f} GiB,"
        f" {platform.system()} {platform.release()}"
    )


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.machine()


def _optimisation() -> str:
    """Return the build's optimisation: an unoptimised interpreter is slower by a third."""
    configured = str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    compiled = str(sysconfig.get_config_var("PY_CFLAGS") or "")
    levels = re.findall(r"-O\w+", compiled)
    profiled = "--enable-optimizations" in configured
    linked = re.search(r"--with-lto(?!=no)", configured) is not None
    debug = sysconfig.get_config_var("Py_DEBUG") in {1, "1"}
    return ", ".join(
        (
            f"built with {levels[-1] if levels else 'unknown optimisation'}",
            "PGO" if profiled else "no PGO",
            "LTO" if linked else "no LTO",
            *(("debug build",) if debug else ()),
        )
    )


def _java() -> str:
    try:
        java = find_java()
    except JavaUnavailable:
        return "none"
    said = subprocess.run(
        [java.executable, "-version"], capture_output=True, text=True, check=False
    ).stderr.splitlines()
    return f"{said[0] if said else java.version} ({java.executable})"


def _package(name: str) -> str | None:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return None
