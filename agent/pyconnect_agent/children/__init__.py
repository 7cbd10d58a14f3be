"""Child processes of connectors and tasks, seen from the worker process.

Design: docs/explanation/design/children.md.
"""
