"""A control without a worker process: the test is the worker."""

import threading
from dataclasses import dataclass, field


@dataclass
class FakeControl:
    """The part of `tasks.control.Control` that loops look at."""

    should_pause: bool = False
    stop_requested: threading.Event = field(default_factory=threading.Event)
    changed: threading.Event = field(default_factory=threading.Event)

    @property
    def stopping(self) -> bool:
        return self.stop_requested.is_set()

    def wait(self, timeout_s: float | None = None) -> None:
        """The test changes the state in between: nothing to wait for."""
        raise AssertionError("a loop waits although nothing can change")
