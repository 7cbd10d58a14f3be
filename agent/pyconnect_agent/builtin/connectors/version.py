"""The version that the connectors shipped with the worker report.

Layer: builtin.
"""

VERSION = "4.3.1"
"""Of the Kafka Connect whose connectors they behave like: tools compare it with a Java worker's."""
