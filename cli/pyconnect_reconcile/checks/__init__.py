"""One module per job: each takes a Bench and returns an Outcome."""
