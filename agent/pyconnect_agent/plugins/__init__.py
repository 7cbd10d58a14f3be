"""Finding and loading plugins. Only child processes load plugins.

Design: docs/explanation/design/plugins.md.
"""
