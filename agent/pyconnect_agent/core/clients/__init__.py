"""Configuration of the Kafka clients that a worker creates. Pure."""
