"""The catalog of plugins and their versions. Pure."""
