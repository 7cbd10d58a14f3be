"""Offsets of connectors: how they are committed, stored and changed. Pure."""
