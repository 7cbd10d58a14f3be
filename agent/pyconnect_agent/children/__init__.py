"""Child processes of connectors and tasks, seen from the worker process."""
