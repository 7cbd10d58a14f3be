"""The herder as `decide(state, event, now) -> (state, effects)`.

Design: docs/explanation/design/herder.md.
"""
