"""Shell of `core.herder`: runs its effects and feeds results back as events."""
