"""librdkafka's settings for a consumer that reads a log."""

from __future__ import annotations

FORCED = {
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
}
# librdkafka insists on a group id, which is never used. It would keep 64 MB unread, and what one
# answer brings beyond: of small records each byte costs five.
DEFAULTS = {
    "group.id": "unused",
    "queued.max.messages.kbytes": 2_048,
    "fetch.max.bytes": 2_097_152,
}

# How long brokers hold back an answer in which there is nothing, half a second unless set. Only
# after it are partitions fetched that were not in that request, and is the end known that is
# behind a transaction's marker.
BRIEF_FETCH = {"fetch.wait.max.ms": 10}
"""For a short-lived process, whose frequent fetches do not burden the brokers for long."""
TRANSACTIONAL_FETCH = {"fetch.wait.max.ms": 20}
"""For a topic with transactional writers. Debezium reads its offset after each transaction."""
