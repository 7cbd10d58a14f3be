"""`pyconnect completion SHELL`."""

from __future__ import annotations

import typer

from pyconnect_cli.errors import UsageError
from pyconnect_cli.session import session_of

app = typer.Typer(help="Print the completion script of a shell.", invoke_without_command=True)


@app.command("bash")
def bash(context: typer.Context) -> None:
    """Print the script for bash: ~/.local/share/bash-completion/completions/pyconnect."""
    session_of(context).output.line(completion_script("bash").rstrip("\n"))


@app.command("zsh")
def zsh(context: typer.Context) -> None:
    """Print the script for zsh; save it as _pyconnect in a directory of $fpath."""
    session_of(context).output.line(completion_script("zsh").rstrip("\n"))


@app.command("fish")
def fish(context: typer.Context) -> None:
    """Print the script for fish; save it as ~/.config/fish/completions/pyconnect.fish."""
    session_of(context).output.line(completion_script("fish").rstrip("\n"))


@app.callback()
def completion(context: typer.Context) -> None:
    """Print the completion script of a shell."""
    if context.invoked_subcommand is None:
        raise UsageError("name a shell", hint="pyconnect completion bash|zsh|fish")


def completion_script(shell: str) -> str:
    """Return the script for one shell."""
    from importlib.resources import files

    return files("pyconnect_cli.completion").joinpath(f"pyconnect.{shell}").read_text("utf-8")
