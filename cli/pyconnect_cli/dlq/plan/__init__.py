"""Decisions about dead letters and replays. Pure."""
