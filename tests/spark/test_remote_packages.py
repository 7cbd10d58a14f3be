"""The needs of a session before its start."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from pyconnect_clients.installation import install_command
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.sessions import spark_session
from pyconnect_reconcile.spec import SparkSettings

pytestmark = pytest.mark.spark


def test_spark_connect_names_the_packages_it_needs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The client of Spark Connect is an extra of pyspark: the error says how to install it."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    session = spark_session(
        SparkSettings(remote="sc://127.0.0.1:1"),
        app_name="tests",
        work_directory=tmp_path,
        events=Events(machine=True, stream=io.StringIO()),
    )
    with pytest.raises(ReconcileError, match="Spark Connect needs more packages") as refused:
        session.__enter__()
    assert refused.value.hint == f"install them: {install_command('reconcile-connect')}"
