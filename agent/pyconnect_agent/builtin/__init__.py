"""Plugins that ship with the worker."""
