"""Kills and faults, and witnesses of what they must not change."""
