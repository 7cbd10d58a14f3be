"""A real Apache Kafka from its jars, and workers beside it, for trying things out and for tests.

Layer: library under `pyconnect sandbox`; the test suite starts its brokers with the same code.
Modules: `java` (which Java), `jars` with `repository` and `jar_cache` (which jars), `processes`
and `tether` (process groups that leave nothing behind), `server` (start, stop, kill, suspend),
`broker`, `java_worker`, `agent` (what is started), `state` and `environment` (named sandboxes
that outlive a command).
It prints nothing: long work reports through a `progress` callable that the caller supplies.
"""
