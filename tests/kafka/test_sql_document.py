"""docs/reference/connectors-sql.md: its example is run here, as it is written."""

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.agents.agent import Agents
from tests.support.eventually import eventually
from tests.support.names import unique_name

pytestmark = pytest.mark.kafka

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "reference" / "connectors-sql.md"


def test_the_example_copies_its_table(agents: Agents, tmp_path: Path) -> None:
    """Only directory and topic are others, because tests share a machine and a broker."""
    text = DOCUMENT.read_text("utf-8").replace("/tmp/shop", str(tmp_path))
    text = text.replace("shop-", f"{unique_name('shop')}-")
    (program,) = blocks(text, "python")
    subprocess.run([sys.executable, "-c", program], check=True)
    agent = agents.start()
    for number, config in enumerate(map(json.loads, blocks(text, "json"))):
        agent.create(f"orders-{number}", config)
    (query,), (answer,) = blocks(text, "sql"), blocks(text, "text")

    def copied() -> str:
        with closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
            try:
                found = connection.execute(query).fetchall()
            except sqlite3.OperationalError:
                return "there is no table yet\n"
        return "".join("|".join(map(str, row)) + "\n" for row in found)

    eventually(lambda: copied() == answer, describe=copied)


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
