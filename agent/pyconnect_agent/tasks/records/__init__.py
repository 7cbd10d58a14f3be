"""Stages that records of sources and sinks pass: transformations, tolerance, active topics."""
