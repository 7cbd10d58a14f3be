"""Connectors that ship with the worker."""
