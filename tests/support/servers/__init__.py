"""Real servers, and operations of tests on their topics."""
