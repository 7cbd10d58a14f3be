"""Exactly-once delivery: records and their offsets share transactions (KIP-618)."""
