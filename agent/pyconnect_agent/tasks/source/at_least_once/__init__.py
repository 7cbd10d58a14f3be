"""At-least-once delivery: offsets are committed after their records are acknowledged."""
