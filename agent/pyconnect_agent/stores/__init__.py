"""Config, status and offset stores: a reducer of `core` over a compacted log.

Design: docs/explanation/design/stores.md.
"""
