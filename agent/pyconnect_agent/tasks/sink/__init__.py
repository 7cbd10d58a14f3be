"""A sink task: its loop, its pipeline, its commits."""
