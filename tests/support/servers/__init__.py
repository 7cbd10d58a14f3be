"""Real servers, and what tests do with their topics."""
