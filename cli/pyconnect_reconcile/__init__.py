"""Spark batch jobs that audit what Kafka Connect moved.

Design: docs/explanation/design/reconciliation.md.
"""
