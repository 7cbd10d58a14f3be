"""The words of `pyconnect upgrade`, which needs no verb."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from typer.core import TyperOption

from pyconnect_cli.verbs import NounGroup

if TYPE_CHECKING:
    from typer._click.core import Context


class UpgradeGroup(NounGroup):
    """A noun whose verb `run` may be left out: `pyconnect upgrade --phase preparing`."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Read the words; without a verb they are those of `run`."""
        return super().parse_args(ctx, self.with_verb(ctx, args))

    def with_verb(self, ctx: Context, args: list[str]) -> list[str]:
        """Return the words with their verb first, if they have none; two were options once."""
        if self._names_verb(ctx, args) or {"-h", "--help"} & set(args):
            return args
        former = {"--plan": "plan", "--cleanup": "abandon"}
        verb = next((former[word] for word in args if word in former), "run")
        return [verb, *(word for word in args if word not in former)]

    def _names_verb(self, ctx: Context, args: Sequence[str]) -> bool:
        """Whether a word is not an option or the value of one."""
        options = [p for p in self.commands["run"].get_params(ctx) if isinstance(p, TyperOption)]
        with_value = {flag for o in options if not (o.is_flag or o.count) for flag in o.opts}
        before = ["", *args]
        return any(
            not word.startswith("-") and last not in with_value
            for last, word in zip(before, args, strict=False)
        )
