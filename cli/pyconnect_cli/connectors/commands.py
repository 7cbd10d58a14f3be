"""`pyconnect connectors`: everything about connectors, over REST.

The verbs stand in five modules: what shows, what works from files, what works on another cluster,
the editor, what acts on a selection.
"""

from __future__ import annotations

import typer

from pyconnect_cli.connectors import (
    act as _connectors_act,
)
from pyconnect_cli.connectors import (
    edit as _connectors_edit,
)
from pyconnect_cli.connectors import (
    from_files as _connectors_files,
)
from pyconnect_cli.connectors import (
    promote as _connectors_promote,
)
from pyconnect_cli.connectors import (
    show as _connectors_show,
)

app = typer.Typer(help="List, create, change, pause, stop, restart and delete connectors.")
for part in (
    _connectors_show,
    _connectors_files,
    _connectors_promote,
    _connectors_edit,
    _connectors_act,
):
    app.registered_commands.extend(part.app.registered_commands)
