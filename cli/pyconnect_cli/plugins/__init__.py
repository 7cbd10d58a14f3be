"""`pyconnect plugins`: list and describe the plugins of a worker, try a plugin."""
