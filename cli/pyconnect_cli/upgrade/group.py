"""The words of `pyconnect upgrade`, which needs no verb."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from typer.core import TyperOption

from pyconnect_cli.verbs import NounGroup

if TYPE_CHECKING:
    from typer._click.core import Command, Context


class UpgradeGroup(NounGroup):
    """A noun whose verb `run` may be left out: `pyconnect upgrade --phase preparing`."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Read the words; without a verb they belong to `run`."""
        return super().parse_args(ctx, self.with_verb(ctx, args))

    def with_verb(self, ctx: Context, args: list[str]) -> list[str]:
        """Return the words with a verb first; two verbs were options in earlier versions."""
        if self._names_verb(ctx, args) or {"-h", "--help"} & set(args):
            return args
        former = {"--plan": "plan", "--cleanup": "abandon"}
        verb = next((former[word] for word in args if word in former), "run")
        words = [word for word in args if word not in former]
        return [verb, *(words if verb == "run" else self._known_words(ctx, verb, words))]

    def _known_words(self, ctx: Context, verb: str, words: Sequence[str]) -> list[str]:
        """Leave out options of `run`, with their values, that the other verb does not have."""
        run, own = (
            {flag: option for option in _options(self.commands[name], ctx) for flag in option.opts}
            for name in ("run", verb)
        )
        known: list[str] = []
        rest = iter(words)
        for word in rest:
            flag, _, value = word.partition("=")
            if flag in run and flag not in own:
                if not run[flag].is_flag and not value:
                    next(rest, None)
            else:
                known.append(word)
        return known

    def _names_verb(self, ctx: Context, args: Sequence[str]) -> bool:
        """Return whether a word is neither an option nor its value, and so a verb."""
        options = _options(self.commands["run"], ctx)
        with_value = {flag for o in options if not (o.is_flag or o.count) for flag in o.opts}
        before = ["", *args]
        return any(
            not word.startswith("-") and last not in with_value
            for last, word in zip(before, args, strict=False)
        )


def _options(command: Command, ctx: Context) -> list[TyperOption]:
    return [p for p in command.get_params(ctx) if isinstance(p, TyperOption)]
