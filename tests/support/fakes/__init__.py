"""Fakes of the worker's seams and of the servers that it talks to."""
