"""The only importers of confluent_kafka and kafka."""
