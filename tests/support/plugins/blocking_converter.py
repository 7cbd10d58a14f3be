"""A StringConverter that holds a task up before its producer exists, while a file says so.

Setting `directory`: while `hold` is in it, configuring waits; `held` then appears in it.
"""

import time
from collections.abc import Mapping
from pathlib import Path

from pyconnect_agent.builtin.converters.base import StringConverter

HOLD = "hold"
HELD = "held"
POLL_S = 0.05


class BlockingConverter(StringConverter):
    def configure(self, configs: Mapping[str, object], is_key: bool) -> None:
        super().configure(configs, is_key)
        directory = Path(str(configs["directory"]))
        while (directory / HOLD).exists():
            (directory / HELD).touch()
            time.sleep(POLL_S)


BLOCKING_CONVERTER = f"{__name__}.{BlockingConverter.__name__}"
