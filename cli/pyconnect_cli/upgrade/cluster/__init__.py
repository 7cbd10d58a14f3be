"""What an upgrade reads from workers and brokers, and its lock on the cluster."""
