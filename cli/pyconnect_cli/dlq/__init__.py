"""`pyconnect dlq`, and `pyconnect connectors dlq`: dead letters by cause, and their replay."""
