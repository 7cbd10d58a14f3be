"""The HTTP interface of Kafka Connect over the herder.

Design: docs/explanation/design/rest.md.
"""
