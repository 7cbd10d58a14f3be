"""Offsets of connectors: what may be committed, how they are stored and changed. Pure."""
