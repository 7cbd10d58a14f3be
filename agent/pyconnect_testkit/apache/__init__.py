"""Connectors to test workers with, as Apache's of the package `org.apache.kafka.connect.tools`."""
