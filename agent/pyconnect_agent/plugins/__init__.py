"""Finding and loading plugins. Loading happens in child processes only.

Design: docs/explanation/design/plugins.md.
"""
