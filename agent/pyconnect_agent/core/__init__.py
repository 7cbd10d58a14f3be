"""Pure decisions: no IO, clock, randomness, threads, logging or environment."""
