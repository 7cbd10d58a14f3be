"""Java connectors and tasks, as the connectors and tasks that this process runs.

Design: docs/explanation/design/java.md.
"""
