"""Typed configuration of workers, connectors and their clients; all of it pure."""
