"""The command line as a process."""
