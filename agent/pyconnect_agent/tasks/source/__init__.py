"""A source task: its loop, its pipeline and the delivery of its records."""
