"""The meaning of Kafka's Java client properties, and the names and rights of Connect's clients.

The agent, the command line and the reconciliation jobs read the same files with the same outcome.
Most of it is pure; `key_stores`, `tls` and `properties_file` read files and make objects of them.

Design: docs/explanation/design/clients.md.
"""
