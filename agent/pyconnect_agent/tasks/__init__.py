"""What runs inside a child process: the only place where plugin code runs."""
