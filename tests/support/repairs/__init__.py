"""Sinks whose tables tests damage and repair."""
