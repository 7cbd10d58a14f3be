"""A worker, made of its parts, from its configuration."""
