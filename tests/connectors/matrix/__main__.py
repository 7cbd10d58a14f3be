"""Run the matrix and print the outcomes that differ from the promised ones.

python -m tests.connectors.matrix [WORD …]      paths whose names have each of the words
python -m tests.connectors.matrix fits          values against columns that exist
"""

import logging
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path

from tests.connectors.matrix import fitting
from tests.connectors.matrix.systems import Systems, cells_of
from tests.support.servers.mariadb import running_mariadb
from tests.support.servers.postgres import running_postgres


def main(words: list[str]) -> None:
    logging.disable(logging.CRITICAL)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        postgres = stack.enter_context(running_postgres())
        mariadb = stack.enter_context(running_mariadb())
        systems = stack.enter_context(closing(Systems(postgres, mariadb, scratch)))
        if words == ["fits"]:
            for columns in systems.columns.values():
                for fault in fitting.faults(columns):
                    _say(f"{columns.name} {fault}")
            return
        for source in systems.sources:
            for path in systems.paths(source):
                if any(word not in path.name for word in words):
                    continue
                began = time.monotonic()
                faults = path.faults(cells_of(source))
                seconds = time.monotonic() - began
                _say(f"## {path.name}: {len(faults)} faults, {seconds:.1f} s")
                for fault in faults:
                    _say(f"  {fault}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


main(sys.argv[1:])
