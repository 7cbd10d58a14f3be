"""A Kafka Connect worker.

Design: docs/explanation/design/index.md.
"""
