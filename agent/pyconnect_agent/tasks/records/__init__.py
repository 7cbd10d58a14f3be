"""Stages that records of sources and sinks pass: transformations, tolerance, provenance, topics."""
