"""Imported once by the fork server, so that every child shares the loaded modules and their data.

The module leaves no thread and no client behind: a fork would break them.
"""

import encodings.idna

import regex

from pyconnect_agent.builtin.connectors import file_stream
from pyconnect_agent.builtin.converters import base, json
from pyconnect_agent.core.config.worker_config import DistributedConfig
from pyconnect_agent.kafka.clients import create_producer
from pyconnect_agent.process.logging import configure_logging
from pyconnect_agent.tasks import host

__all__ = [
    "base",
    "encodings",  # encodes a host's name, for connections of Python's own
    "file_stream",
    "host",
    "json",
    "regex",  # of topics.regex, of routers and of predicates
]

configure_logging()
# The first client of a process makes librdkafka and OpenSSL set up 1.5 MiB; this client and its
# threads end at once.
create_producer({"log_level": 0})
# A definition of a class of its own would take another 0.5 MiB.
DistributedConfig.definition()
