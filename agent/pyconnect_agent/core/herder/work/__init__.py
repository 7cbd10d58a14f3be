"""Connectors and tasks of this worker: when they start, stop and are configured. Pure."""
