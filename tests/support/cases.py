"""Tables of the cases of a test."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest


def cases(
    names: str, *rows: Any, ids: Sequence[str] | Callable[[Any], object] | None = None
) -> pytest.MarkDecorator:
    """Run the test with each row: a value for a single name, else a tuple with one for each."""
    return pytest.mark.parametrize(names, rows, ids=ids)
