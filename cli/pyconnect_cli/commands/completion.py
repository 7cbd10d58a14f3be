"""`pyconnect completion SHELL`."""

from __future__ import annotations

import typer

from pyconnect_cli.errors import UsageError
from pyconnect_cli.session import session_of

app = typer.Typer(help="Print the completion of a shell.", invoke_without_command=True)

SHELLS = ("bash", "zsh", "fish")


@app.command("bash")
def bash(context: typer.Context) -> None:
    """Print the file for bash; save it as ~/.local/share/bash-completion/completions/pyconnect."""
    session_of(context).output.line(completion_file("bash").rstrip("\n"))


@app.command("zsh")
def zsh(context: typer.Context) -> None:
    """Print the file for zsh; save it as _pyconnect in a directory of $fpath."""
    session_of(context).output.line(completion_file("zsh").rstrip("\n"))


@app.command("fish")
def fish(context: typer.Context) -> None:
    """Print the file for fish; save it as ~/.config/fish/completions/pyconnect.fish."""
    session_of(context).output.line(completion_file("fish").rstrip("\n"))


@app.callback()
def completion(context: typer.Context) -> None:
    """Print the completion of a shell."""
    if context.invoked_subcommand is None:
        raise UsageError("name a shell", hint="pyconnect completion bash|zsh|fish")


def completion_file(shell: str) -> str:
    """Return the file for one shell."""
    from pyconnect_cli.completion.bash import bash_completion
    from pyconnect_cli.completion.fish import fish_completion
    from pyconnect_cli.completion.tree import command_tree
    from pyconnect_cli.completion.zsh import zsh_completion

    make = {"bash": bash_completion, "zsh": zsh_completion, "fish": fish_completion}
    return make[shell](command_tree())
