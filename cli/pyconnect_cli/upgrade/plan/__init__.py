"""Decisions of an upgrade: checks, gates, the next action. Pure."""
