"""Whether a run decodes Avro, so that Spark needs a jar for it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

SIDES = ("left", "right", "arrived")
EXTRACTIONS = ("sequence", "group", "identity", "key")
AVRO = "avro"


def uses_avro(document: Mapping[str, object]) -> bool:
    """Return whether a spec names values in Avro, or members of them."""
    return any(text == AVRO or text.startswith(f"{AVRO}:") for text in _forms(document))


def _forms(document: Mapping[str, object]) -> Iterator[str]:
    tiers = document.get("tiers")
    sides = [document.get(name) for name in SIDES]
    for tier in tiers if isinstance(tiers, list) else ():
        if isinstance(tier, Mapping):
            sides.append(tier.get("side"))
            yield str(tier.get("event_time"))
    for side in sides:
        if isinstance(side, Mapping):
            yield str(side.get("value"))
    for name in EXTRACTIONS:
        yield str(document.get(name))
