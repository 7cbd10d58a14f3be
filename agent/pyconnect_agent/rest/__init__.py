"""The HTTP interface of Kafka Connect over the herder."""
