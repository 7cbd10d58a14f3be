"""`pyconnect connectors`: everything about connectors, over REST.

The verbs are in nine modules: `show`, `logs`, `dlq.dead_letters`, `history` (and `rollback`),
`init` (templates), `try_out`, `from_files`, `promote` (another cluster) and `act` (`edit`, and
changes of a selection).
"""

import typer

from pyconnect_cli.connectors import act, from_files, history, init, logs, promote, show, try_out
from pyconnect_cli.dlq import dead_letters

app = typer.Typer(help="List, create, change, pause, stop, restart and delete connectors.")
for part in (show, logs, dead_letters, history, init, try_out, from_files, promote, act):
    app.registered_commands.extend(part.app.registered_commands)
