"""One module per noun; each exposes a typer `app`."""
