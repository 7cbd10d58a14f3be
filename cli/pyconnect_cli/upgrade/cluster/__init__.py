"""What an upgrade reads of workers and brokers, and the lock it takes there."""
