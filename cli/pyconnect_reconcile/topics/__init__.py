"""Topics of a run: the snapshot, findings from the snapshot alone, and the records."""
