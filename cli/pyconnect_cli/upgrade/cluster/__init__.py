"""Reads workers and brokers for an upgrade, and holds its lock on the cluster."""
