"""The code of child processes: the only place where plugin code runs.

Design: docs/explanation/design/children.md.
"""
