"""The inventory file: workers, addresses, commands; faults are refused by name."""

from pathlib import Path

import pytest

from pyconnect_cli.errors import UsageError
from pyconnect_cli.settings.given_files import Inventory, read_inventory
from tests.support.cases import cases

TEXT = """
group = "g"
offsets_topic = "o"
worker_configs = ["java.properties", "/etc/connect.properties"]
[commands]
configure = ["ssh", "{host}", "set {phase} ${HOME} {a b}"]
restart = ["r", "{url}", "{port}", "{run_id}"]
timeout = "5s"
[[workers]]
url = "http://w1:8083/"
address = "http://10.0.0.1:8083"
admin = "http://10.0.0.1:8084/"
[[workers]]
url = "https://w2"
commands.stop = ["halt"]
"""


def read(directory: Path, text: str) -> Inventory:
    path = directory / "inventory.toml"
    path.write_text(text)
    return read_inventory(path)


def test_a_file_is_read(tmp_path: Path) -> None:
    """A worker's own commands replace the common ones; `{…}` places are filled in."""
    inventory = read(tmp_path, TEXT)
    assert (inventory.group, inventory.offsets_topic) == ("g", "o")
    beside = str(tmp_path / "java.properties")
    assert inventory.worker_configs == (beside, "/etc/connect.properties")
    assert inventory.workers == ("http://w1:8083", "https://w2")
    assert inventory.address("http://w1:8083") == "http://10.0.0.1:8083"
    assert inventory.admin("http://w1:8083") == "http://10.0.0.1:8084"
    assert inventory.admin("https://w2") == "https://w2"
    commands = inventory.commands("https://w2")
    assert commands.can_change
    assert commands.timeout_s == 5
    filled = commands.argv("restart", "https://w2", phase="enabled", run_id="r1")
    assert filled == ["r", "https://w2", "443", "r1"]
    filled = commands.argv("configure", "http://w1:8083", phase="enabled", run_id="r1")
    assert filled == ["ssh", "w1", "set enabled ${HOME} {a b}"]
    assert commands.templates["stop"] == ("halt",)
    assert "stop" not in inventory.commands("http://w1:8083").templates


def test_stop_and_start_make_a_restart(tmp_path: Path) -> None:
    """One of the two commands does not suffice; a missing inventory is named by its path."""
    inventory = read(tmp_path, '[commands]\nconfigure=["c"]\nstop=["a"]\nstart=["b"]\n')
    assert inventory.common.restart_names == ("stop", "start")
    assert not read(tmp_path, '[commands]\nconfigure=["c"]\nstop=["a"]\n').common.can_change
    with pytest.raises(UsageError, match="cannot be read"):
        read_inventory(tmp_path / "none.toml")


@cases(
    "text, message",
    ("x = [", "is not TOML"),
    ("x = 1", "`x` is unknown"),
    ("worker_configs = 'a'", "worker_configs: write a list"),
    ("[commands]\nboot=['a']", "`boot` is unknown"),
    ("[commands]\nstop='a b'", "stop must be a list of words"),
    ("[commands]\nstop=[]", "stop must be a list of words"),
    ("[commands]\nstop=['{hsot}']", "{hsot} is unknown"),
    ("[commands]\ntimeout='soon'", "is not a duration"),
    ("[[workers]]\naddress='a'", "`url` is missing"),
    ("workers = 1", r"write \[\[workers\]\]"),
)
def test_faults_of_the_inventory_are_named(tmp_path: Path, text: str, message: str) -> None:
    """Each fault has a message with the key or the expected form."""
    with pytest.raises(UsageError, match=message):
        read(tmp_path, text)
