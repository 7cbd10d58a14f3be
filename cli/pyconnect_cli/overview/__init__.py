"""A whole cluster at one moment: `pyconnect status`, and what the live view draws."""
