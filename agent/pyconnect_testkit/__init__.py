"""Connectors for tests: a data generator, and the test connectors that Apache Kafka ships."""
