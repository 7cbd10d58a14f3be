"""Topics, sinks and reports of audits."""
