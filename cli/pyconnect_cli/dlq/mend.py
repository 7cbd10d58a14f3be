"""A jq program that mends the values of dead letters, which are JSON."""

from __future__ import annotations

from collections.abc import Callable

from pyconnect_cli.errors import UsageError
from pyconnect_cli.kafka.model import TopicRecord
from pyconnect_cli.parsing.json_text import parse_json
from pyconnect_cli.render.output import jq_program
from pyconnect_cli.render.styles import json_text

Mend = Callable[[TopicRecord], bytes | None]


def mender(expression: str | None) -> Mend:
    """Return a function from a letter to its value, mended by a jq program if there is one.

    The bytes stay as they are if the program changes nothing; a null stays a null. UsageError
    names the letter whose value is not JSON, has numbers that jq would round, or does not have
    one result.
    """
    if expression is None:
        return lambda letter: letter.value
    program, same = jq_program(expression, "--mend"), jq_program(".", "--mend")

    def mended(letter: TopicRecord) -> bytes | None:
        if letter.value is None:
            return None
        place = f"--mend: {letter.topic}-{letter.partition}@{letter.offset}"
        try:
            text = letter.value.decode()
            json_text(parse_json(text, place, exact=True)).encode()
        except UnicodeError as exc:
            raise UsageError(f"{place}: the value is not JSON: it is not UTF-8") from exc
        try:
            results = [json_text(result) for result in program(text)]
        except UsageError as exc:
            raise UsageError(f"{place}: {exc.message.removeprefix('--mend: ')}") from exc
        if len(results) != 1:
            raise UsageError(
                f"{place}: the program has {len(results)} results, not one",
                hint="use `if … then … else . end` to keep other values as they are",
            )
        unchanged = results == [json_text(result) for result in same(text)]
        return letter.value if unchanged else results[0].encode()

    return mended
