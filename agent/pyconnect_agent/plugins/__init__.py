"""Finding and loading plugins. Loading happens in child processes only."""
