"""Shell of `core.herder`: performs its effects and posts the results as events.

Design: docs/explanation/design/herder.md.
"""
