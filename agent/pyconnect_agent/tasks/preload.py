"""Imported once by the fork server, so that every child shares what it loads.

Layer: tasks. No threads, no clients: a fork would break them.
"""

import gc
import signal

from pyconnect_agent.builtin import standard_input
from pyconnect_agent.builtin.connectors import file_stream
from pyconnect_agent.builtin.converters import json, simple_header, string
from pyconnect_agent.plugins import discovery
from pyconnect_agent.tasks import host

__all__ = ["discovery", "file_stream", "host", "json", "simple_header", "standard_input", "string"]

# Service managers send SIGTERM to every process of the worker. The fork server must outlive the
# children, which stop in the supervisor's order: it tells how they ended, and ends with the
# supervisor. Children set a meaning of their own (`host`).
signal.signal(signal.SIGTERM, signal.SIG_IGN)

# What is loaded here stays: collections in the children would only copy its shared pages.
gc.collect()
gc.freeze()
