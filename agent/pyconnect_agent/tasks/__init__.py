"""The code of child processes: the only place where plugin code runs."""
