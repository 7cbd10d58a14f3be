"""A real Apache Kafka from its jars, and workers beside it, for trials and for tests.

Layer: library under `pyconnect sandbox`; the test suite starts its brokers with the same code.
Modules: `runtime` (Java, and archives of classes), `jars`, `processes` (process groups that leave
nothing behind), `server` (ports; start, stop, kill, suspend), `broker` and `connect_worker` (the
servers), `state` and `lifecycle` (named sandboxes that outlive a command).
Nothing is printed: long work reports through a `progress` callable of the caller.
"""
