"""Puts the compiled Java host into the wheel, so that a Java without a compiler is enough later.

It needs a JDK (JAVA_HOME, else the path) and Kafka's jars (KAFKA_HOME, else those that the sandbox
has fetched). Without them the wheel holds the sources, and says so while it is built.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "agent/pyconnect_agent/java_processes"


class BuildFailedError(Exception):
    """What is missing for the compilation."""


class JavaHostHook(BuildHookInterface[Any]):
    """Compiles before the wheel is filled; an editable installation compiles on first use."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        build = _module(Path(self.root) / PACKAGE / "build.py")
        jar = Path(self.directory) / build.HOST_JAR
        try:
            build.compile_host(_java(), _kafka_jars(), jar)
        except (BuildFailedError, build.HostBuildError) as error:
            self.app.display_warning(
                f"This wheel holds no compiled Java host: {error}. Java connectors then need a JDK "
                "where the wheel is installed."
            )
            return
        build_data["force_include"][str(jar)] = f"pyconnect_agent/java_processes/{build.HOST_JAR}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing but the wheel in its directory."""
        del version, artifact_path
        for path in build_data["force_include"]:
            if path.endswith(".jar"):
                Path(path).unlink(missing_ok=True)


def _module(path: Path) -> ModuleType:
    """Import one module of the agent, whose libraries are not there while a wheel is built."""
    spec = importlib.util.spec_from_file_location("pyconnect_java_build", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _java() -> Path:
    home = os.environ.get("JAVA_HOME")
    found = f"{home}/bin/java" if home else shutil.which("java")
    if found is None:
        raise BuildFailedError("there is no Java")
    return Path(found).resolve()


def _kafka_jars() -> list[str]:
    home = os.environ.get("KAFKA_HOME")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "pyconnect/kafka"
    for libs in [Path(home) / "libs", Path(home)] if home else sorted(cache.glob("*/libs"))[::-1]:
        # A release that only Java plugins use has no more than Kafka's API in the cache.
        if all(any(libs.glob(f"{name}-*.jar")) for name in ("connect-api", "log4j-api")):
            return sorted(map(str, libs.glob("*.jar")))
    raise BuildFailedError(
        "there are no jars of Kafka 4; set KAFKA_HOME, or run `pyconnect sandbox up` once"
    )
