"""Offsets of connectors: how they are committed, stored and changed. Pure.

Design: docs/explanation/design/exactly-once.md.
"""
