"""Lines of the log, and levels at run time."""

import contextvars
import io
import json
import logging
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest

from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.process.logging import (
    TRACE,
    LogFormat,
    RareRepeats,
    bind_scope,
    configure_logging,
    mask_logs,
)
from tests.support.commands.processes import run_python

LOG = logging.getLogger("test.module")


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in ("test", "test.module", "test.other"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def logged(**options: Any) -> io.StringIO:
    """Configure logging, and return the stream that gets the lines."""
    stream = io.StringIO()
    configure_logging(stream=stream, **options)
    return stream


def test_a_text_line_has_time_level_event_fields_and_logger() -> None:
    """Fields follow the constant text, in quotes where needed."""
    stream = logged()

    def task() -> None:
        bind_scope(connector="c", task="0")
        LOG.warning("offsets committed", extra={"partitions": 3, "reason": 'a "b" c'})

    contextvars.copy_context().run(task)
    assert re.fullmatch(
        r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] WARN offsets committed connector=c task=0 "
        r'partitions=3 reason="a \\"b\\" c" \(test\.module\)\n',
        stream.getvalue(),
    )


def test_a_json_line_is_one_object() -> None:
    """All fields and the traceback are members of the object."""
    stream = logged(log_format=LogFormat.JSON)
    try:
        raise ValueError("two\nlines")
    except ValueError:
        LOG.exception("it failed", extra={"what": "x"})
    [line] = stream.getvalue().splitlines()
    event = json.loads(line)
    expected = ("ERROR", "test.module", "it failed")
    assert (event["level"], event["logger"], event["event"]) == expected
    assert event["what"] == "x"
    assert event["exception"].endswith("ValueError: two\nlines")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}[+-]\d{4}", event["timestamp"])


def test_a_task_id_is_one_name_and_an_event_one_line() -> None:
    """A task id has one form in all formats, and line ends in texts and fields are escaped."""
    for log_format, shown in ((LogFormat.JSON, '"task": "c-0"'), (LogFormat.TEXT, " task=c-0 ")):
        stream = logged(log_format=log_format)
        LOG.warning("event", extra={"task": ConnectorTaskId("c", 0)})
        assert shown in stream.getvalue()
    stream = logged()
    LOG.error("a\n[2026] ERROR forged", extra={"field": "b\nforged"})
    assert stream.getvalue().count("\n") == 1


def test_a_bound_scope_stays() -> None:
    """Fields bound one after another are in all later lines."""
    stream = logged()

    def child() -> None:
        bind_scope(connector="c")
        bind_scope(task="1")
        LOG.info("event")

    contextvars.copy_context().run(child)
    assert "connector=c task=1" in stream.getvalue()


def test_levels_change_at_run_time_for_all_that_start_with_a_name() -> None:
    """A level applies to all loggers whose name starts so, also to later ones."""
    stream = io.StringIO()
    levels = configure_logging(levels={"root": "WARN", "test.module": "ERROR"}, stream=stream)
    other = logging.getLogger("test.other")
    assert not other.isEnabledFor(logging.INFO)
    assert levels.set_level("test", "TRACE") == ("test", "test.module")
    assert other.isEnabledFor(TRACE)
    assert LOG.isEnabledFor(TRACE)
    assert levels.set_level("test.", "OFF") == ("test.", "test.module")
    assert not LOG.isEnabledFor(logging.CRITICAL)
    assert other.isEnabledFor(TRACE)
    assert levels.loggers()["test.module"].level == "OFF"
    assert levels.loggers()["test.module"].last_modified_ms is not None
    assert levels.loggers()["root"].last_modified_ms is None


def test_log4js_level_names_are_shown() -> None:
    """TRACE, WARN and FATAL have Log4j's names in the lines."""
    stream = logged(levels={"root": "ALL"})
    LOG.log(TRACE, "t")
    LOG.warning("w")
    LOG.critical("f")
    assert re.findall(r"\] (\w+) ", stream.getvalue()) == ["TRACE", "WARN", "FATAL"]


def test_importing_costs_little() -> None:
    """Every child imports this module, so it imports no event loop and no third-party library."""
    script = (
        "import sys; import pyconnect_agent.process.logging;"
        "print(sorted({'asyncio', 'rich', 'structlog', 'starlette'} & set(sys.modules)))"
    )
    done = run_python(["-c", script], os.environ)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


@pytest.mark.parametrize("log_format", LogFormat)
def test_secrets_are_hidden_in_texts_fields_and_tracebacks(log_format: LogFormat) -> None:
    """Only the secret is hidden in texts, fields and tracebacks; levels are not masked."""
    stream = logged(log_format=log_format)
    mask_logs(lambda text: text.replace("sesame", "<hidden>").replace("ERROR", "<level>"))
    try:
        raise ValueError("bad sesame")
    except ValueError:
        LOG.exception("sesame is %s", "wrong", extra={"given": "sesame", "of": {1: "x"}})
    assert "sesame" not in stream.getvalue()
    assert stream.getvalue().count("<hidden>") == 4
    assert "ERROR" in stream.getvalue()


def test_a_line_that_a_library_repeats_is_written_once_a_minute() -> None:
    """The next line after a minute has the number of those left out; other lines all pass."""
    now_s = [0.0]
    repeats = RareRepeats(lambda: now_s[0])

    def passes(name: str, level: int, text: str) -> tuple[bool, int | None]:
        record = logging.makeLogRecord({"name": name, "levelno": level, "msg": text})
        return repeats.filter(record), vars(record).get("repeated")

    refused = ("kafka.net.manager", logging.ERROR, "Connection failed: {} ECONNREFUSED")
    for attempt in range(50):
        text = refused[2].format(attempt)
        assert passes(*refused[:2], text) == (attempt == 0, None)
        assert passes("kafka.net.manager", logging.INFO, text) == (True, None)
        assert passes("pyconnect_agent.herder", logging.ERROR, text) == (True, None)
    assert passes(*refused[:2], "Connection reset") == (True, None)
    now_s[0] = 60
    assert passes(*refused[:2], text) == (True, 49)
    now_s[0] = 120
    assert passes(*refused[:2], text) == (True, None)
