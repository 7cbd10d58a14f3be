"""`pyconnect help` and `pyconnect version`."""
