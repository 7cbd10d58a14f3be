"""The herder as `decide(state, event, now) -> (state, effects)`."""
