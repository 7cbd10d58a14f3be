"""`pyconnect plugins test`: the result of the self-check as output and exit code."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import cases

pytestmark = pytest.mark.wire

# `run` of conftest.py: arguments to (exit code, stdout, stderr)
Run = Any


def config_file(directory: Path, **config: str) -> str:
    path = directory / "config.json"
    path.write_text(json.dumps({"name": "check", **config}))
    return str(path)


def test_a_plugin_that_works_exits_with_zero(run: Run, tmp_path: Path) -> None:
    """A plugin that works is exit 0 with a row for each step, without a worker."""
    file = config_file(
        tmp_path, **{"connector.class": "FileStreamSink", "file": str(tmp_path / "out")}
    )
    code, out, _ = run("plugins", "test", "FileStreamSink", "-f", file, address=None)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[:3]] == ["STEP", "find", "load"]


def test_a_failed_step_exits_with_one_and_says_so(run: Run, tmp_path: Path) -> None:
    """A failed step is exit 1, and JSON has the steps up to it."""
    file = config_file(tmp_path, **{"connector.class": "Datagen", "topic": "t"})
    code, out, err = run("plugins", "test", "Datagen", "-f", file, "-o", "json", address=None)
    assert code == 1
    steps = json.loads(out)
    assert steps[-1]["step"] == "validate"
    assert steps[-1]["result"] == "failed"
    assert "exactly one of" in err


HARMFUL = """
import os
import subprocess
import sys
import ctypes
from pyconnect_api import *

class Harmful(Transformation):
    def config(self):
        return ConfigDef().define("how", ConfigType.STRING, documentation="How.")
    def configure(self, configs):
        self.how = configs["how"]
    def apply(self, record):
        if self.how == "exit":
            os._exit(0)
        if self.how == "crash":
            ctypes.string_at(0)
        if self.how == "loop":
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
            self.spin()
    def spin(self):
        while True:
            pass
    def close(self):
        if self.how == "exit at the end":
            os._exit(7)
"""


@cases(
    "how, step, detail",
    ("exit", "sample", "the plugin ended the process with exit code 0"),
    ("exit at the end", "close", "the plugin ended the process with exit code 7"),
    ("crash", "sample", "the process was ended by SIGSEGV"),
    ("loop", "sample", "did not return in time; --for TIME allows more"),
)
def test_the_step_at_which_a_plugin_ends_the_process_or_hangs_is_named(
    run: Run, tmp_path: Path, how: str, step: str, detail: str
) -> None:
    """The step where the plugin ends, crashes or blocks the process is named, with its stack."""
    directory = tmp_path / "plugins" / "one"
    directory.mkdir(parents=True)
    (directory / "harmful.py").write_text(HARMFUL)
    file = config_file(tmp_path, how=how)
    path = ("--plugin-path", str(directory.parent), "--for", "1s")
    code, out, err = run(
        "plugins", "test", "Harmful", "-f", file, *path, "-o", "json", address=None
    )
    assert code == 1
    steps = json.loads(out)
    assert [found["step"] for found in steps[:4]] == ["find", "load", "define", "configure"]
    assert (steps[-1]["step"], steps[-1]["detail"]) == (step, detail)
    assert f"failed at `{step}`" in err
    stack = steps[-1]["stack"]
    assert ("in apply" in stack) is (how in {"loop", "crash"})
    assert ("in spin" in stack) is (how == "loop")
    assert "self_check" not in stack
