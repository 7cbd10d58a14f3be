"""The last words of a child process."""

import io
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyconnect_agent.process.logging import configure_logging, mask_logs
from pyconnect_agent.tasks.host import leave


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Return the log of this process, without the password."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    configure_logging(stream=stream)
    mask_logs(lambda text: text.replace("sesame", "${file:x:password}"))
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)


def test_last_words_are_logged_and_hide_values_of_config_providers(
    log: io.StringIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker process shows them to every user of REST."""
    # pytest-xdist cannot send a report whose captured log holds a lone surrogate.
    handlers = [h for h in logging.getLogger().handlers if getattr(h, "stream", None) is log]
    monkeypatch.setattr(logging.getLogger(), "handlers", handlers)
    try:
        raise LookupError("no caf\udce9") from ValueError("bad sesame")
    except LookupError as exc:
        error = exc
    with (tmp_path / "words").open("wb", buffering=0) as file:
        leave(error, file.fileno())
    words = (tmp_path / "words").read_text()
    assert words.startswith("LookupError: no caf\\udce9\n")
    assert "Caused by: ValueError: bad ${file:x:password}" in words
    assert "ValueError: bad ${file:x:password}" in log.getvalue()
    assert "sesame" not in words + log.getvalue()
