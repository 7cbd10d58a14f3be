"""Converters that ship with Kafka Connect, with the bytes of Apache's own."""
