"""Connectors whose `alter_offsets` follows their setting `hook` and notes its arguments.

`hook`: `true`, `false` or `none` (returned), `unsupported`, `refuse`, `absent`, `break`, `exit`,
`die`, `hang`. `told`: a file that gets the offsets as JSON pairs, a line for each call.
"""

import json
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyconnect_agent.builtin.connectors.file_stream import FileStreamSinkConnector
from pyconnect_api import ConnectException, NotFoundException, TopicPartition
from tests.support.plugins.sources import SequenceSource

HOOK_SOURCE = f"{__name__}.HookSource"
HOOK_SINK = f"{__name__}.HookSink"


class HookSource(SequenceSource):
    """A source of numbers with the hook."""

    def alter_offsets(
        self,
        connector_config: Mapping[str, str],
        offsets: Sequence[tuple[Mapping[str, object] | None, Mapping[str, object] | None]],
    ) -> bool:
        return _act(connector_config, [list(pair) for pair in offsets])


class HookSink(FileStreamSinkConnector):
    """A sink of lines with the hook."""

    def alter_offsets(
        self, connector_config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        return _act(connector_config, [[list(found), offset] for found, offset in offsets.items()])


def _act(config: Mapping[str, str], pairs: list[list[object]]) -> bool:
    if "told" in config:
        with Path(config["told"]).open("a") as told:
            told.write(json.dumps(pairs) + "\n")
    match config["hook"]:
        case "unsupported":
            raise NotImplementedError
        case "refuse":
            raise ConnectException("The connector refuses")
        case "absent":
            raise NotFoundException("The external system has no such place")
        case "break":
            raise ValueError("Nobody is to read this")
        case "exit":
            sys.exit(3)
        case "die":
            os._exit(3)
        case "hang":
            threading.Event().wait()
        case "false":
            return False
        case "none":
            return None  # type: ignore[return-value]  # as authors who forget to return
    return True
