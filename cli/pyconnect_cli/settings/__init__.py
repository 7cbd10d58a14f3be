"""Settings of a run: context files, environment, client properties, directories."""
