"""`pyconnect connectors`: show, create, change, pause, stop, restart and delete connectors."""
