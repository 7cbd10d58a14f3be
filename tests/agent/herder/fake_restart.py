"""A worker's restart that only counts."""


class FakeRestart:
    """Implements `herder.phase_change.RestartPort`."""

    def __init__(self, method: str = "self") -> None:
        self.method = method
        self.begun = 0

    def begin(self) -> None:
        self.begun += 1
