"""The parts of a connector or task: resolved configs, plugins, client settings."""
