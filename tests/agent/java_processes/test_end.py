"""Why a Java process has ended, by its exit code and its last output."""

from pyconnect_agent.java_processes.launch import JavaOptions
from pyconnect_agent.java_processes.process import reason_of
from tests.support.cases import cases

OPTIONS = JavaOptions(heap="9m", heap_key="agent.java.heap")
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
    """An exit code that Java shares with plugins is explained by what Java has printed."""
    assert expected in reason_of(code, OPTIONS, lines)


def test_heap_that_no_key_sets() -> None:
    """The processes that answer questions about plugins have a fixed one."""
    reason = reason_of(3, JavaOptions(heap="9m"), [f"{OUT}Java heap space"])
    assert reason.endswith("(Java heap space): its heap is limited to 9m (-Xmx9m).")
