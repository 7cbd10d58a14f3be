"""How a leader divides connectors and tasks among the workers of its group."""
