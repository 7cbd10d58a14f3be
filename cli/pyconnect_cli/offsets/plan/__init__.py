"""Decisions about offsets: entries, checks, plans, snapshots, orphans. Pure."""
