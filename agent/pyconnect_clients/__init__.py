"""The meaning of Kafka's Java client properties, for every package that makes a Kafka client.

The agent, the command line and the reconciliation jobs read the same files with the same outcome.
Most of it is pure; `key_stores`, `tls` and `properties_file` read files and make objects of them.
"""
