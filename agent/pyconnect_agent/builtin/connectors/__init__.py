"""Connectors that ship with the worker (spec connectors.md)."""
