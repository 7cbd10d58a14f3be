"""Child processes of connectors and tasks, seen from the supervisor."""
