"""The only importers of confluent_kafka and kafka.

Design: docs/explanation/design/clients.md.
"""
