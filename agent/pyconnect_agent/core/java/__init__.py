"""Behaviour of Java's libraries that configurations rely on: patterns, JSON text. Pure."""
