"""`pyconnect version`."""

from __future__ import annotations

import platform

import typer

from pyconnect_cli.session import session_of

app = typer.Typer(help="Show the version of this command.")


@app.command()
def version(context: typer.Context) -> None:
    """Show the version of this command."""
    from pyconnect_clients.installation import version as installed

    session = session_of(context)
    document = {"pyconnect": installed(), "python": platform.python_version()}
    text = f"pyconnect {document['pyconnect']} (Python {document['python']})"
    session.output.document(document, text=text)
