"""`pyconnect health`, `info`, `doctor` and `loggers`."""
