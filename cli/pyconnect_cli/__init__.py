"""The `pyconnect` command-line tool.

Design: docs/explanation/design/command-line.md.
"""
