"""Imported once by the fork server, so that every child shares the loaded modules.

Layer: tasks. No threads, no clients: a fork would break them.
"""

from pyconnect_agent.builtin import standard_input
from pyconnect_agent.builtin.connectors import file_stream
from pyconnect_agent.builtin.converters import json, simple_header, string
from pyconnect_agent.plugins import discovery
from pyconnect_agent.tasks import host

__all__ = ["discovery", "file_stream", "host", "json", "simple_header", "standard_input", "string"]
