"""Config providers that ship with Kafka: properties files, directories of secrets, environment."""
