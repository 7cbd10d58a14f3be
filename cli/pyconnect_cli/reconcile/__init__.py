"""What `pyconnect reconcile` does itself: resolve a spec, start Spark's process, relay it."""
