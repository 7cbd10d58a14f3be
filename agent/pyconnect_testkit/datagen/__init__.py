"""Datagen: records made up after an Avro schema with hints, at a given rate."""
