"""Which line of a stack trace names the cause."""

from pyconnect_cli.rest.model import root_cause
from tests.support.cases import cases

JAVA = """\
org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask due to an exception.
\tat org.apache.kafka.connect.runtime.WorkerSinkTask.deliver(WorkerSinkTask.java:1)
\tSuppressed: java.io.IOException: while closing
\tCaused by: java.io.IOException: of the suppressed
Caused by: java.lang.RuntimeException: cannot write
\t... 9 more
Caused by: java.io.IOException: disk full
\t... 10 more
"""
PYTHON = """\
Traceback (most recent call last):
  File "a.py", line 1, in put
OSError: disk full
while writing b

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "b.py", line 1, in run
ConnectError: the sink failed
"""
HANDLING = """\
Traceback (most recent call last):
  File "a.py", line 1, in get
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 3, in get
ValueError: no x
"""


@cases(
    "trace, line",
    ("java.lang.Error: full\n\tat org.example.A.b\n", "java.lang.Error: full"),
    ('Traceback (most recent call last):\n  File "x"\nOSError: full\n', "OSError: full"),
    (JAVA, "java.io.IOException: disk full"),
    (PYTHON, "OSError: disk full"),
    (HANDLING, "ValueError: no x"),
    ("\n", ""),
)
def test_the_line_of_a_trace_that_names_the_cause(trace: str, line: str) -> None:
    """Java writes the outermost exception first, Python last; an operator mends the cause."""
    assert root_cause(trace) == line
