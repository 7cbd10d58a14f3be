"""Draws the pictures of the live view into docs/images: `python -m tests.cli.top.draw`."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

from textual.pilot import Pilot

from pyconnect_cli.top.commands import Ended
from pyconnect_cli.top.screens import AskScreen
from pyconnect_cli.top.view import Top
from tests.cli.top.shown import ShownCluster, busy_cluster

IMAGES = Path(__file__).resolve().parents[3] / "docs" / "images"
SIZE = (120, 13)
FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"
"""A local font, because the library's default would be fetched from a foreign site."""


async def _draw() -> None:
    cluster = ShownCluster(busy_cluster())
    plan = ("connectors", "restart", "--dry-run", "orders-lake")
    cluster.answers[plan] = Ended(0, ("would restart orders-lake",))
    top = Top(cluster, interval_s=3600)
    async with top.run_test(size=SIZE) as pilot:
        await _until(pilot, lambda: bool(top.state.look))
        _write(top, "top.svg")
        await pilot.press("r")
        await _until(pilot, lambda: isinstance(top.screen, AskScreen))
        _write(top, "top-question.svg")


async def _until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await pilot.pause(0.01)
    await pilot.pause()


def _write(top: Top, name: str) -> None:
    picture = top.export_screenshot(title="pyconnect top")
    picture = re.sub(r"<!-- Generated.*?-->", "", picture)
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    picture = re.sub(r"font-family: Fira Code[^;]*;", f"font-family: {FONT};", picture)
    lines = (line.rstrip() for line in picture.splitlines())
    (IMAGES / name).write_text("\n".join((*filter(None, lines), "")), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(_draw())
