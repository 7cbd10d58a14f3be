"""Kills and faults, and witnesses of the facts that they must not change."""
