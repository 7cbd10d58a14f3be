"""The `pyconnect` command-line tool."""
