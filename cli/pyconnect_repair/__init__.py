"""Repairs what an audit found: a process that `pyconnect reconcile repair` starts.

`plan` decides and is pure. `tables`, `lakes` and `topics` are the kinds of repairs, `records` is
what they begin with. `sources` reads messages of topics and rows of a source's table.
"""
