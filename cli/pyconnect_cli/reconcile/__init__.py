"""`pyconnect reconcile`: resolve a spec, start the Spark process, show its answer."""
