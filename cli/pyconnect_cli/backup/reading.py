"""Connectors and loggers of a cluster as a backup holds them; each connector at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from pyconnect_cli.acting.workers import ask_workers
from pyconnect_cli.backup.plan import SavedConnector
from pyconnect_cli.errors import NotFound, PyconnectError, ServerError
from pyconnect_cli.kafka.admin import kafka_cluster
from pyconnect_cli.kafka.reader import stored_target_states
from pyconnect_cli.offsets.run import offsets_view, snapshot_of
from pyconnect_cli.rest.agent_client import AgentClient
from pyconnect_cli.rest.client import ConnectClient
from pyconnect_cli.rest.exchange import Exchange
from pyconnect_cli.rest.model import ConnectorView
from pyconnect_cli.session import Session
from pyconnect_cli.settings.given_files import worker_properties

ATTEMPTS = 5
SHOWN = frozenset({"RUNNING", "PAUSED", "STOPPED"})
"""States of a connector that are its target state."""
CONFIG_TOPIC = "config.storage.topic"
NO_STATES = (
    "Java workers report it only in their config topic: give --kafka-bootstrap and"
    " --worker-config worker.properties"
)


class ClusterReader:
    """Reads connectors for one command. Threads may read, one connector each.

    `worker_config`: a worker's properties file, which names the config topic.
    """

    def __init__(self, session: Session, worker_config: str | None = None) -> None:
        self._session = session
        self._worker_config = worker_config

    def connector(self, view: ConnectorView) -> tuple[SavedConnector, str | None]:
        """Read a connector; return it with the reason why a part is missing, if one is.

        It is read until configuration and state are the same before and after its offsets. Raises
        NotFound for a connector that was deleted meanwhile.
        """
        for _ in range(ATTEMPTS):
            saved, fault = self._saved(view)
            again = self._session.client.connector_views([view.name]).get(view.name)
            if again is None or again.info is None:
                raise NotFound(f"{view.name}: was deleted meanwhile")
            if view.info and _compared(again) == _compared(view):
                return saved, fault
            view = again
        raise ServerError(
            f"{view.name}: its configuration or state changed each time while it was read",
            hint="run the backup again",
        )

    def _saved(self, view: ConnectorView) -> tuple[SavedConnector, str | None]:
        saved = SavedConnector(
            name=view.name,
            config=dict(view.config),
            state=self._target_state(view),
            offsets=None,
        )
        fault = None
        if saved.state is None:
            fault = f"its target state is not known, because it is {view.state}; {NO_STATES}"
        try:
            offsets = snapshot_of(offsets_view(self._session, view), self._session.worker)
        except NotFound:
            raise
        except PyconnectError as error:
            return saved, f"its offsets could not be read: {error.message}"
        return replace(saved, offsets=offsets), fault

    def _target_state(self, view: ConnectorView) -> str | None:
        """Return RUNNING, PAUSED or STOPPED; None if nothing shows the target state.

        The state of a connector that is FAILED or UNASSIGNED is not its target state. Agents report
        target states, and the config topic holds them; else running and paused tasks show it.
        """
        if view.state in SHOWN:
            return view.state
        if self._states is not None:
            state = self._states.get(view.name, "STARTED")
            return "RUNNING" if state == "STARTED" else state
        tasks = {task.state for task in view.status.tasks} if view.status else set()
        return next((state for state in ("PAUSED", "RUNNING") if state in tasks), None)

    @cached_property
    def _states(self) -> Mapping[str, str] | None:
        session = self._session
        urls = session.client.exchange.urls
        for answer in ask_workers(session, urls, lambda ask: AgentClient(ask).target_states()):
            if not isinstance(answer, PyconnectError):
                return answer
        file = self._worker_config
        topic = worker_properties(file).get(CONFIG_TOPIC) if file else None
        if not topic or not session.settings.kafka_bootstrap:
            return None
        try:
            return stored_target_states(kafka_cluster(session, "").librdkafka(), topic)
        except PyconnectError as error:
            session.output.warning(f"target states were not read from {topic}: {error.message}")
            return None


def worker_levels(exchange: Exchange) -> dict[str, str]:
    """Return the levels of the one worker of an exchange."""
    return {each.name: each.level for each in ConnectClient(exchange).loggers() if each.level}


def _compared(view: ConnectorView) -> object:
    """Return what has to be the same before and after the offsets were read."""
    return view.info.config if view.info else None, view.state in SHOWN and view.state
