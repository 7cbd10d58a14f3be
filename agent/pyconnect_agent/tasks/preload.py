"""Imported once by the fork server, so that every child shares what it loads.

Layer: tasks. No threads, no clients: a fork would break them.
"""

import confluent_kafka  # noqa: F401  the largest part of a child

import pyconnect_agent.builtin  # noqa: F401
import pyconnect_agent.tasks.host  # noqa: F401
