"""`pyconnect offsets`: offsets of connectors, their files and their backups."""
