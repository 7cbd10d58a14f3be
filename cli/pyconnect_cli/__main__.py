"""Entry point of `pyconnect`: what must be quick is answered before the parser is imported."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command line and exit with its code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words in (["--help"], ["-h"]):
        from pyconnect_cli.root_help import root_help

        print(root_help())  # noqa: T201
        sys.exit(0)
    if words[0] == "__complete":
        from pyconnect_cli.completion.candidates import print_candidates

        sys.exit(print_candidates(words[1:]))
    from pyconnect_cli.app import run

    sys.exit(run(words))


if __name__ == "__main__":
    main()
