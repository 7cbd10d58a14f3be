"""Repairs of the differences that an audit found; `pyconnect reconcile repair` starts the process.

`plan` decides and is pure. `tables`, `lakes` and `topics` are the kinds of repairs, which `records`
prepares. `sources` reads messages of topics and rows of a source's table.
"""
