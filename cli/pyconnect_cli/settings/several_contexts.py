"""One command on several contexts: `--context eu,us`, or `--context` given more than once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyconnect_cli.errors import ExitCode, UsageError
from pyconnect_cli.settings.contexts import load_config_files
from pyconnect_cli.settings.resolved import working_directory

ONCE = ("--textfile",)
"""Options whose result would be the last context's only."""


@dataclass(frozen=True, slots=True)
class OnEach:
    """The contexts in their order, and the other words of the command line."""

    contexts: tuple[str, ...]
    words: tuple[str, ...]

    def arguments(self, context: str) -> list[str]:
        """Return the command line for one of them."""
        return ["--context", context, *self.words]


def several_contexts(arguments: Sequence[str], environ: Mapping[str, str]) -> OnEach | None:
    """Return the contexts and the words of the command; None for less than two contexts.

    Raises NotFound for a context that does not exist, before the first run.
    """
    given, words = _taken(arguments, "--context")
    given = given or [text for text in (environ.get("PYCONNECT_CONTEXT"),) if text]
    if len(given) < 2 and "," not in "".join(given):
        return None
    config = next(iter(reversed(_taken(arguments, "--config")[0])), None)
    files = load_config_files(
        environ, working_directory(), Path(config).expanduser() if config else None
    )
    known = files.context_names()
    names = [
        name.strip() for text in given for name in ([text] if text in known else text.split(","))
    ]
    contexts = tuple(dict.fromkeys(name for name in names if name))
    if len(contexts) < 2:
        return None
    for name in contexts:
        files.find_context(name)
    for option in ONCE:
        if _taken(arguments, option)[0]:
            raise UsageError(f"{option} is for a run on one context", hint="run it for each")
    return OnEach(contexts, tuple(words))


def combined(codes: Sequence[int], contexts: int) -> int:
    """Return the common exit code of all runs, or 8 (a part failed) if the codes differ."""
    if ExitCode.INTERRUPTED in codes:
        return ExitCode.INTERRUPTED
    if len(codes) == contexts and len(set(codes)) == 1:
        return codes[0]
    return ExitCode.PARTIAL_FAILURE


def _taken(arguments: Sequence[str], option: str) -> tuple[list[str], list[str]]:
    """Return the values of an option, and the words without it."""
    values: list[str] = []
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if word == "--":
            rest += [word, *words]
        elif name != option:
            rest.append(word)
        elif equals:
            values.append(value)
        elif (following := next(words, None)) is not None:
            values.append(following)
        else:
            rest.append(word)
    return values, rest
