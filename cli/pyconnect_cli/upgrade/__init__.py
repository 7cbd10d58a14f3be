"""Rolling a Connect cluster from one phase of exactly-once to another, worker by worker (KIP-618).

The modules of `plan` are pure; `observe`, `gather` and `perform` are the edge.
Kafka has no counterpart: its documentation describes the steps for an operator.

Design: docs/explanation/design/command-line.md.
"""
