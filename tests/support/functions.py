"""Chains of transformations that are functions."""

from collections.abc import Callable
from typing import Any, TypeAlias

from pyconnect_agent.tasks.records import Chain, Tolerance, TransformationStage
from pyconnect_agent.tasks.sink.pipeline import Intake
from pyconnect_api import ConfigDef, ConnectRecord, Transformation

Function: TypeAlias = Callable[[Any], Any]


class Applied(Transformation[ConnectRecord]):
    """A transformation that applies a function."""

    def __init__(self, function: Function) -> None:
        self._function = function

    def config(self) -> ConfigDef:
        return ConfigDef()

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        result: ConnectRecord | None = self._function(record)
        return result


def chain_of(*functions: Function, tolerance: Tolerance) -> Chain:
    """Return the functions as a chain."""
    return Chain(
        [
            TransformationStage(alias=f"f{place}", transformation=Applied(function))
            for place, function in enumerate(functions)
        ],
        tolerance,
    )


ANY_MESSAGES = Intake(topic_used=None, is_assigned=lambda _: True, check_error=lambda _: None)
