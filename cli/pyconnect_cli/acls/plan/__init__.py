"""Decisions about ACLs: needs, grants, verdicts. Pure."""
