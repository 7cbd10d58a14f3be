"""Errors of client properties; each package raises them again as its own error."""


class ClientPropertyError(Exception):
    """The error of a property that cannot be used.

    `key` names the property, `problem` is its fault without a secret, `way_out` the remedy.
    """

    def __init__(self, key: str, problem: str, way_out: str | None = None) -> None:
        super().__init__(key, problem, way_out)
        self.key = key
        self.problem = problem
        self.way_out = way_out

    @property
    def statement(self) -> str:
        """Key and problem without the remedy."""
        return f"{self.key}: {self.problem}"

    def __str__(self) -> str:
        return self.statement if self.way_out is None else f"{self.statement}; {self.way_out}"
