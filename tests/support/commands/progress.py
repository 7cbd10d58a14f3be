"""Progress as a test sees it."""


class RecordedProgress:
    """Keeps what was reported; a `Progress`."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.passing: list[str] = []

    def __call__(self, message: str, *, passing: bool = False) -> None:
        (self.passing if passing else self.messages).append(message)
