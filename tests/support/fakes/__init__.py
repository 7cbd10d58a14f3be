"""Fakes of the worker's interfaces and of the servers that it calls."""
