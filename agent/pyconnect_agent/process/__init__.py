"""The process of a worker or a child: its threads, memory, restart and service manager."""
