"""Spark batch jobs that audit what Kafka Connect moved."""
