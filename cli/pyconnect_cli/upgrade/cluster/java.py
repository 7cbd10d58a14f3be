"""Infers the phase of a Java worker over REST without any change.

`enabled`: the worker's validation accepts `exactly.once.support=required`. Otherwise the worker is
`disabled` or `preparing`, which only its file shows. The request to the fencing endpoint names a
connector that does not exist, so it never fences.
"""

from __future__ import annotations

from dataclasses import replace

from pyconnect_cli.errors import NotFound, PreconditionFailed, PyconnectError
from pyconnect_cli.rest.answers import Validation
from pyconnect_cli.rest.client import ConnectClient
from pyconnect_cli.rest.request import RestRequest
from pyconnect_cli.upgrade.plan.model import Kind, PhaseSource, UpgradedWorker
from pyconnect_clients.phases import Phase

SUPPORT = "exactly.once.support"
NOT_ENABLED = "This worker does not have exactly-once source support enabled."
PROBE = "pyconnect-upgrade-probe"
HARMLESS = (
    "org.apache.kafka.connect.file.FileStreamSourceConnector",
    "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
)
FENCE_ANSWERS = frozenset({400, 401, 403, 404, 409, 503})
NOT_ENABLED_PHASES = frozenset({Phase.DISABLED, Phase.PREPARING})


def observe(client: ConnectClient, seen: UpgradedWorker) -> UpgradedWorker:
    """Complete the observation of a Java worker; raises the errors of its answers."""
    info = client.worker_info()
    seen = replace(
        seen,
        kind=Kind.JAVA,
        version=info.version,
        cluster_id=info.kafka_cluster_id,
        ready=_ready(client),
    )
    sources = [plugin.class_name for plugin in client.plugins() if plugin.type == "source"]
    known = [name for name in HARMLESS if name in sources]
    plugin = next(iter((*known, *sources)), None)
    if plugin is None:
        return seen
    config = {"connector.class": plugin, "name": PROBE, "topic": PROBE, SUPPORT: "required"}
    errors = support_errors(client.validate(plugin, config))
    enabled = NOT_ENABLED not in errors
    return replace(
        seen,
        phases=frozenset({Phase.ENABLED}) if enabled else NOT_ENABLED_PHASES,
        source=PhaseSource.INFERRED,
    )


def has_fencing_endpoint(client: ConnectClient) -> bool | None:
    """Return whether the worker serves requests to fence; None if that cannot be determined."""
    answer = client.exchange.send(
        RestRequest(
            method="PUT",
            path=("connectors", PROBE, "fence"),
            query=(("forward", "false"),),
            accepted=FENCE_ANSWERS,
        )
    )
    message = answer.body.get("message") if isinstance(answer.body, dict) else None
    return fences(answer.status, str(message))


def fences(status: int, message: str) -> bool | None:
    """Read the answer to an unsigned request for a connector that does not exist."""
    match status:
        case 400 | 409 | 503:
            return True
        case 404:
            # The answer of the resource names the connector; the router's answer does not.
            return PROBE in message
        case _:
            return None


def support_errors(validation: Validation) -> tuple[str, ...]:
    """Return the errors of a validation that concern exactly-once."""
    return tuple(
        error for field in validation.fields if field.name == SUPPORT for error in field.errors
    )


def _ready(client: ConnectClient) -> bool:
    try:
        return client.health().status == "healthy"
    except (NotFound, PreconditionFailed):
        # Before 3.9 only an answer of its herder shows that the worker is ready.
        try:
            client.connector(PROBE)
        except NotFound:
            return True
        except PyconnectError:
            return False
        return True
