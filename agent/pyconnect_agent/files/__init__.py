"""The properties files of a worker and its connectors."""
