"""The words of `pyconnect upgrade`, which needs no verb."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from typer.core import TyperOption

from pyconnect_cli.noun_groups import NounGroup

if TYPE_CHECKING:
    from typer._click.core import Context


class UpgradeGroup(NounGroup):
    """A noun whose verb `run` may be left out: `pyconnect upgrade --phase preparing`."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Read the words; without a verb they belong to `run`."""
        return super().parse_args(ctx, self.with_verb(ctx, args))

    def with_verb(self, ctx: Context, args: list[str]) -> list[str]:
        """Return the words with a verb first."""
        if self._names_verb(ctx, args) or {"-h", "--help"} & set(args):
            return args
        return ["run", *args]

    def _names_verb(self, ctx: Context, args: Sequence[str]) -> bool:
        """Return whether a word is neither an option nor its value, and so a verb."""
        params = self.commands["run"].get_params(ctx)
        options = [each for each in params if isinstance(each, TyperOption)]
        with_value = {flag for o in options if not (o.is_flag or o.count) for flag in o.opts}
        before = ["", *args]
        return any(
            not word.startswith("-") and last not in with_value
            for last, word in zip(before, args, strict=False)
        )
