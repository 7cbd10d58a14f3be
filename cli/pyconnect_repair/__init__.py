"""Repairs what an audit found: a process that `pyconnect reconcile repair` starts.

`plan` decides and is pure. `tables` and `topics` are the two kinds of repairs; `messages` reads
topics, `records` as a sink does, `images` reads and writes rows, `work` performs plans of tables in
transactions.
"""
