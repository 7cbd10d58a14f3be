"""Texts about what the worker is doing."""

from pyconnect_agent.core.reporting import Stage, stage_sentence, timed_out_text


def test_a_stage_names_its_beginning_and_its_end() -> None:
    """In UTC as Java's Instant prints it: fractions only when there are any."""
    stage = Stage(
        description="reading to the end of the config topic", started_ms=1_700_000_000_000
    )
    assert timed_out_text(stage) == (
        "Request timed out. The worker is currently reading to the end of the config topic, which"
        " began at 2023-11-14T22:13:20Z."
    )
    stage = Stage(description="shutting down", started_ms=1_005, completed_ms=2_000)
    assert stage_sentence(stage) == (
        "The last operation the worker completed was shutting down, which began at"
        " 1970-01-01T00:00:01.005Z and completed at 1970-01-01T00:00:02Z."
    )
    assert timed_out_text(None) == "Request timed out"
