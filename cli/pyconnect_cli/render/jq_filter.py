"""`--jq`: select from a JSON document before it is printed, in the language of jq.

The library is an extra with the jq program's own code; it is imported only for this option.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyconnect_cli.errors import PreconditionFailed, UsageError
from pyconnect_cli.render.styles import json_text

JqFilter = Callable[[object], Iterator[str]]


def jq_filter(expression: str) -> JqFilter:
    """Return a function from a document to lines; UsageError for an invalid expression.

    A text becomes a line unchanged, any other value compact JSON.
    """
    try:
        import jq
    except ImportError as missing:
        from pyconnect_clients.installation import install_command

        raise PreconditionFailed(
            "--jq needs the library jq, which is not installed",
            hint=f"install the extra [jq]: {install_command('jq')}; or, with the jq program:"
            " -o json | jq …",
        ) from missing
    try:
        program = jq.compile(expression)
    except ValueError as fault:
        raise UsageError(f"--jq: {_first_line(fault)}", hint="see: man jq") from fault

    def lines(document: object) -> Iterator[str]:
        # The library publishes no types.
        results: Iterable[Any] = program.input_text(json.dumps(document))
        try:
            for result in results:
                yield (result if isinstance(result, str) else json_text(result))
        except ValueError as fault:
            raise UsageError(f"--jq: {_first_line(fault)}") from fault

    return lines


def _first_line(fault: ValueError) -> str:
    return str(fault).strip().splitlines()[0].removeprefix("jq: error: ")
