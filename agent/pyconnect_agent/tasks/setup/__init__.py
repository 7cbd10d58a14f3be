"""What a connector or task is built from: resolved configs, plugins, client settings."""
