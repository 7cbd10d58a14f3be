"""Connectors for tests: a data generator."""
