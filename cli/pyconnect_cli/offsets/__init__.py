"""Offsets outside the cluster: files that people give, backups that changes leave."""
