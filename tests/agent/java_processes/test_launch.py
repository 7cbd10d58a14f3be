"""Options, memory and temporary directories of Java processes, and the reasons of their ends."""

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from pyconnect_agent.core.config.agent_keys import ENVIRONMENT, HEAP, HEAP_LIMIT, OPTIONS
from pyconnect_agent.core.config.worker_keys import worker_config_def
from pyconnect_agent.java_processes.launch import (
    TEMPORARY_PREFIX,
    JavaOptions,
    TemporaryDirectory,
    java_options,
    remove_leftovers,
)
from pyconnect_agent.java_processes.process import reason_of
from pyconnect_api import ConfigException
from tests.support.cases import cases


def test_defaults_of_the_java_settings_and_of_a_connectors_process() -> None:
    """A connector's process has a small initial heap; the worker's options replace all sizes."""
    arguments = java_options({}, {}).arguments()
    sizes = ("-XX:NewSize=6m", "-XX:MaxNewSize=16m", "-XX:MinHeapFreeRatio=60")
    serial = ("-XX:+UseSerialGC", *sizes)
    assert arguments[-6:] == ("-Xms18m", *serial, "-Xmx256m")
    assert "-XX:+ExitOnOutOfMemoryError" in arguments
    small = java_options({}, {HEAP: "1g"}, quick=True).arguments()
    assert small[-4:] == ("-Xms6m", "-XX:+UseSerialGC", "-Xmn2m", "-Xmx1g")
    own = java_options({OPTIONS: "-Xmn85m"}, {}, quick=True).arguments()
    assert own[-3:] == ("-Xms18m", "-Xmn85m", "-Xmx256m")
    assert "-XX:TieredStopAtLevel=1" in small


def test_options_of_worker_and_connector_come_after_the_fixed_ones() -> None:
    """Java uses the last of several values, so options of worker and connector win."""
    arguments = java_options({OPTIONS: "-XX:MaxRecursiveInlineLevel=1"}, {}).arguments()
    fixed = arguments.index("-XX:MaxRecursiveInlineLevel=0")
    assert fixed < arguments.index("-XX:MaxRecursiveInlineLevel=1")
    worker = {OPTIONS: "-XX:+UseZGC", HEAP: "128m", HEAP_LIMIT: "2g"}
    connector = {HEAP: "1500m", OPTIONS: "-Da='b c' -De=f"}
    options = java_options(worker, connector)
    assert options.heap == "1500m"
    assert options.options == ("-XX:+UseZGC", "-Da=b c", "-De=f")


def test_heaps_stay_within_their_limits() -> None:
    """The initial heap is at most the largest heap, and only connectors have a limit."""
    assert java_options({HEAP: "9m"}, {}).initial_heap == "9m"
    assert java_options({}, {HEAP: "1g"}).initial_heap == "18m"
    assert java_options({HEAP: "4g"}, {}).heap == "4g"


@cases(
    "connector, text",
    ({HEAP: "1025m"}, "the worker allows connectors 1g at most"),
    ({HEAP: "much"}, "a size is a number followed by k, m or g"),
    ({OPTIONS: "-XX:OnError=rm"}, "a connector may set properties"),
    ({OPTIONS: "-javaagent:x.jar"}, "a connector may set properties"),
    ({OPTIONS: "-Dcom.sun.management.jmxremote.port=1"}, "a connector may set properties"),
    ({OPTIONS: "'-Da=b"}, "No closing quotation"),
)
def test_a_connector_may_not_set_some_java_options(connector: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigException, match=text):
        java_options({}, connector)


@cases(
    "key, value, text",
    (HEAP, "lots", "agent.java.heap: a size is a number followed by k, m or g"),
    (HEAP_LIMIT, "2", "agent.java.heap.limit: a size is a number followed by k, m or g"),
    (OPTIONS, "-Da='b", "agent.java.options: No closing quotation"),
    (OPTIONS, "-ea -Xmx2g", "-Xmx2g for configuration agent.java.options: agent.java.heap"),
    (ENVIRONMENT, "TZ=UTC x", "x for configuration agent.java.environment: a variable is"),
)
def test_a_worker_checks_its_java_settings_when_it_starts(key: str, value: str, text: str) -> None:
    found = {each.name: each for each in worker_config_def().validate({key: value})}
    (error,) = found[key].error_messages
    assert text in error


def test_ports_of_jmx_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ports of JMX are removed from all places that Java reads, as processes would share them."""
    port, ssl = "-Dcom.sun.management.jmxremote.port=9", "-Dcom.sun.management.jmxremote.ssl=false"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"{port} -Da=b")
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-Dc=d")
    options = java_options(
        {OPTIONS: f"-Xmn85m {port}", ENVIRONMENT: f"_JAVA_OPTIONS={ssl} X=y"}, {}
    )
    kept, dropped = options.without_jmx()
    assert kept.options == ("-Xmn85m",)
    assert kept.environment == {"_JAVA_OPTIONS": "", "X": "y", "JAVA_TOOL_OPTIONS": "-Da=b"}
    assert dropped == (port, port, ssl)
    monkeypatch.delenv("JAVA_TOOL_OPTIONS")
    assert kept.without_jmx() == (kept, ())


def test_temporary_files_are_where_the_options_say() -> None:
    """The process's temporary directory is made in the last java.io.tmpdir of the options."""
    given = {OPTIONS: "-Djava.io.tmpdir=/a"}
    assert java_options(given, {}).temporary_base() == Path("/a")
    own = java_options(given, {OPTIONS: "-Djava.io.tmpdir=/b"})
    assert own.temporary_base() == Path("/b")
    assert java_options({}, {}).temporary_base() == Path(tempfile.gettempdir())


def test_a_directory_stays_while_its_lock_is_held(tmp_path: Path) -> None:
    """The lock may be held by the Java process after the end of the process that started it."""
    made = TemporaryDirectory(tmp_path)
    (made.path / "native.so").touch()
    inherited = os.dup(made.descriptor)
    os.close(made.descriptor)
    remove_leftovers(tmp_path)
    assert (made.path / "native.so").exists()
    assert made.path.stat().st_mode & 0o777 == 0o700
    os.close(inherited)
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_is_removed_with_its_process(tmp_path: Path) -> None:
    """A second removal of the directory has no effect."""
    made = TemporaryDirectory(tmp_path)
    (made.path / "sub").mkdir()
    made.remove()
    made.remove()
    assert list(tmp_path.iterdir()) == []


def test_other_files_are_no_leftovers(tmp_path: Path) -> None:
    """Files, links and missing directories are not leftovers."""
    (tmp_path / "others").mkdir()
    (tmp_path / f"{TEMPORARY_PREFIX}file").touch()
    (tmp_path / f"{TEMPORARY_PREFIX}link").symlink_to(tmp_path / "others")
    remove_leftovers(tmp_path)
    remove_leftovers(tmp_path / "none")
    assert len(list(tmp_path.iterdir())) == 3


@cases("when", "before it is opened", "before it is locked")
def test_a_directory_that_another_process_takes_for_a_leftover_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """A directory is made again if another process removes it before it is locked."""
    makes, opens = tempfile.mkdtemp, os.open
    taken = []

    def make(**arguments: Any) -> str:
        made = makes(**arguments)
        if not taken and when == "before it is opened":
            taken.append(made)
            Path(made).rmdir()
        return made

    def open_then_lose(path: Path, flags: int) -> int:
        descriptor = opens(path, flags)
        if not taken:
            taken.append(path)
            path.rmdir()
        return descriptor

    monkeypatch.setattr(tempfile, "mkdtemp", make)
    monkeypatch.setattr(os, "open", open_then_lose)
    made = TemporaryDirectory(tmp_path)
    assert taken
    assert made.path.exists()
    made.remove()


BOUNDED = JavaOptions(heap="9m", heap_key="agent.java.heap")
OUT = "Terminating due to java.lang.OutOfMemoryError: "
REFUSED = "Error: Could not create the Java Virtual Machine."


@cases(
    "code, lines, expected",
    (3, ["a", f"{OUT}Java heap space", "b"], "heap is limited to 9m (-Xmx9m). Set agent.java.h"),
    (3, [f"{OUT}GC overhead limit exceeded"], "Set agent.java.heap"),
    (3, [f"{OUT}Metaspace"], "-XX:MaxMetaspaceSize. Raise it in agent.java.options"),
    (3, [f"{OUT}Compressed class space"], "-XX:CompressedClassSpaceSize. Raise it in agent."),
    (3, [f"{OUT}Out of swap space?"], "(Out of swap space?): see agent.java.options"),
    (3, ["printed"], "ended by itself with exit code 3: code of the plugin has called System."),
    (1, ["a warning", "Unrecognized VM option", REFUSED], "start: Unrecognized VM option. "),
    (1, ["Error occurred during initialization of VM", "Too small"], "start: Too small. Its h"),
    (
        1,
        ["Error: JMX: java.net.BindException: Address already in use"],
        "agent.java.options, or by a variable of agent.java.environment, is the same in every",
    ),
    (1, ["printed"], "ended by itself with exit code 1"),
    (0, [], "ended by itself with exit code 0"),
    (70, [], "because a thread of its host failed"),
    (-6, ["# hs_err_pid1.log"], "crashed (SIGABRT); its output names the file of the report"),
    (-9, [], "was killed by SIGKILL: the system may have run out of memory"),
    (-11, [], "was killed by SIGSEGV."),
)
def test_reason_of_an_end(code: int, lines: list[str], expected: str) -> None:
    """An exit code that plugins use too is explained by the text that Java has printed."""
    assert expected in reason_of(code, BOUNDED, lines)


def test_heap_that_no_key_sets() -> None:
    """The reason names no key for a process with a fixed heap."""
    reason = reason_of(3, JavaOptions(heap="9m"), [f"{OUT}Java heap space"])
    assert reason.endswith("(Java heap space): its heap is limited to 9m (-Xmx9m).")
