"""`pyconnect agent`: pyconnect's own workers."""
