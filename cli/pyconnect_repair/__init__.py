"""Repairs what an audit found: a process that `pyconnect reconcile repair` starts.

`plan` decides and is pure. `tables`, `lakes` and `topics` are the kinds of repairs; `sinks` is what
the first two share. `messages` reads topics, `records` as a sink does, `images` reads and writes
rows, `work` performs plans of tables in transactions.
"""
