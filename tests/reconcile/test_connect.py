"""Spark Connect, as far as no server is needed."""

from __future__ import annotations

import re

import pytest

from pyconnect_reconcile.errors import translated
from pyconnect_reconcile.sessions import REDACTED_TEXT, remote_of
from pyconnect_reconcile.spec import SparkSettings

SHOWN = """options {
  key: "kafka.bootstrap.servers"
  value: "broker:9092"
}
options {
  key: "%s"
  value: "a \\"hunter2\\" b\\n\\\\"
}
options {
  key: "minPartitions"
  value: "4"
}"""


def test_a_server_comes_from_the_spec_or_else_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As with Spark's own tools; a master that is named wins over the environment."""
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    assert remote_of(SparkSettings()) is None
    monkeypatch.setenv("SPARK_REMOTE", "sc://there")
    assert remote_of(SparkSettings()) == "sc://there"
    assert remote_of(SparkSettings(remote="sc://here")) == "sc://here"
    assert remote_of(SparkSettings(master="local[1]")) is None


@pytest.mark.parametrize(
    "option",
    ["kafka.sasl.jaas.config", "kafka.ssl.keystore.password", "kafka.ssl.keystore.key", "password"],
)
def test_only_secrets_are_cut_out_of_a_request_s_text(option: str) -> None:
    """Escaped quotes do not end a value; other options stay readable."""
    shown = re.sub(REDACTED_TEXT, "-", SHOWN % option)
    assert shown == re.sub(r'  key: "\S+"\n  value: "a.*\n', "  -\n", SHOWN % option)
    assert "hunter2" not in shown
    assert "broker:9092" in shown


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "[RETRIES_EXCEEDED] The maximum number of retries has been exceeded.",
            "was lost during the run",
        ),
        (
            "<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE",
            "was lost during the run",
        ),
        ("[INVALID_HANDLE.SESSION_CHANGED] The handle is invalid.", "was lost during the run"),
        ("NoSuchAlgorithmException: PBES2 SecretKeyFactory not available", "encrypted PEM key"),
        ("Failed to find data source: kafka. Deploy the application", "no Kafka source"),
    ],
)
def test_errors_of_spark_are_reported_with_a_remedy(said: str, told: str) -> None:
    """Never Spark's words alone."""
    error = translated(said)
    assert told in error.message
    assert error.hint
