"""Repairs what an audit found: a process that `pyconnect reconcile repair` starts.

`plan` decides and is pure; `records` reads topics, `images` reads and writes rows of tables, `work`
performs plans in transactions.
"""
