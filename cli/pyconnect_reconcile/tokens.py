"""Names that tokens (`canonical`) are made and found with. Pure."""

MARK = "\x01"
"""Begins each token that is not a text."""
TOKENS = "pyconnect_tokens"
"""A column of rows: tokens, by column, in place of values that the column's type would change."""
CORRUPT = "pyconnect_corrupt"
"""A column of rows of CSV: the whole row where it has more or fewer values than columns."""
