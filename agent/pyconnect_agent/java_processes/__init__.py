"""Java connectors: their processes, and the messages between them and this process.

Design: docs/explanation/design/java.md.
"""
