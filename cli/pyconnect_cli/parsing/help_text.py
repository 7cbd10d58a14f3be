"""The layout of help pages: options and paths are not broken at their hyphens."""

from __future__ import annotations

from collections.abc import Sequence

from typer._click.formatting import HelpFormatter

# Wrapping does not break lines at this hyphen, which has the same width.
UNBROKEN_HYPHEN = "\u2011"


class HelpText(HelpFormatter):
    """The parser's formatter; options and paths stay in one piece."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the usage line."""
        super().write_usage(prog, _unbroken(args), prefix)

    def write_text(self, text: str) -> None:
        """Write paragraphs."""
        super().write_text(_unbroken(text))

    def write_dl(
        self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write terms and their explanations."""
        super().write_dl([(term, _unbroken(text)) for term, text in rows], col_max, col_spacing)

    def write_lines(self, lines: Sequence[str]) -> None:
        """Write lines unbroken at any length, so that users can copy commands."""
        for line in lines:
            self.write(f"{' ' * self.current_indent}{line}\n")

    def getvalue(self) -> str:
        """Return the page."""
        return super().getvalue().replace(UNBROKEN_HYPHEN, "-")


def _unbroken(text: str) -> str:
    return text.replace("-", UNBROKEN_HYPHEN)
