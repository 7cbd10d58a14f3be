"""Transaction boundaries and transactional ids of source connectors (KIP-618). Pure.

Design: docs/explanation/design/exactly-once.md.
"""
