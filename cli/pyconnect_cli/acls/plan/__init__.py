"""Decisions about ACLs: verdicts, grants and explanations. Pure."""
