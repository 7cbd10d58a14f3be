"""Plugins of the tests, in Python and Java."""
