"""Datagen: records made from an Avro schema with hints, at a given rate."""
