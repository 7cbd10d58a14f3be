"""Modules that the command line uses to plan a run, which must not need Spark."""

import subprocess
import sys

import pytest

WITHOUT_SPARK = "import sys; sys.modules['pyspark'] = None; import {module}"


@pytest.mark.parametrize("module", ["__main__", "capture", "job_runs", "stores.lakes"])
def test_modules_before_a_session_import_no_spark(module: str) -> None:
    """These modules can be imported where Spark cannot."""
    command = [sys.executable, "-c", WITHOUT_SPARK.format(module=f"pyconnect_reconcile.{module}")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert ended.returncode == 0, ended.stderr
