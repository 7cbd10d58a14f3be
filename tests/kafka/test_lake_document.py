"""docs/reference/connectors-lake.md: its example is run here, as it is written."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.agents.agent import Agents
from tests.support.eventually import eventually
from tests.support.names import unique_name

pytestmark = pytest.mark.kafka

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "reference" / "connectors-lake.md"


def test_the_example_fills_files_and_a_table(agents: Agents, tmp_path: Path) -> None:
    """Only directory and topic are others, because tests share a machine and a broker."""
    text = DOCUMENT.read_text("utf-8").replace("/tmp/shop", str(tmp_path))
    text = text.replace("shop-", f"{unique_name('shop')}-")
    prepare, look = blocks(text, "python")
    subprocess.run([sys.executable, "-c", prepare], check=True)
    agent = agents.start()
    for number, config in enumerate(map(json.loads, blocks(text, "json"))):
        agent.create(f"orders-{number}", config)
    (answer,) = blocks(text, "text")

    def found() -> str:
        done = subprocess.run(
            [sys.executable, "-c", look], check=False, capture_output=True, text=True
        )
        return done.stdout or done.stderr

    eventually(lambda: found() == answer, describe=found)


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
