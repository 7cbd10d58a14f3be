"""A Kafka Connect worker."""
