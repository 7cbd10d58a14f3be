"""`pyconnect tasks`: show, restart and kill tasks."""
