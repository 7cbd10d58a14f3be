"""A leader's division of connectors and tasks among the workers of its group."""
