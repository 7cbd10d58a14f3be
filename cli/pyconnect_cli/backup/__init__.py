"""A whole cluster in a directory: `pyconnect backup` and `pyconnect restore`."""
