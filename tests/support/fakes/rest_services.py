"""The REST application over a fake herder, with and without sockets."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyconnect_agent.core.config.worker_config import DistributedConfig
from pyconnect_agent.herder.port import Herder, WorkerAdmin
from pyconnect_agent.rest.app import ADMIN_ROUTES, MAIN_ROUTES, RestApplication
from pyconnect_agent.rest.exchange import Services
from pyconnect_agent.rest.forwarding import Forwarder, WorkerClient
from pyconnect_agent.rest.server import RestServer
from pyconnect_agent.stores.journal import ChangeRecords

START_TIMEOUT_S = 60
STOP_TIMEOUT_MS = 2_000


def application(
    herder: Herder, *, client: WorkerClient | None = None, **settings: Any
) -> RestApplication:
    """Return the application of a worker without separate admin listeners.

    `settings` are those of `Services`, except those of the application itself.
    """
    options = {
        name: settings.pop(name)
        for name in ("access", "cross_origin", "header_rules")
        if name in settings
    }
    services = Services(herder=herder, forwarder=Forwarder(client or WorkerClient()), **settings)
    return RestApplication(services, (*MAIN_ROUTES, *ADMIN_ROUTES), **options)


def rest_config(**properties: str) -> DistributedConfig:
    """Return a worker configuration; `_` in names becomes a dot."""
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return DistributedConfig.parse(
        {
            "bootstrap.servers": "localhost:9092",
            "group.id": "group",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "config.storage.topic": "configs",
            "offset.storage.topic": "offsets",
            "status.storage.topic": "status",
            "listeners": "http://127.0.0.1:0",
            **named,
        }
    )


@contextmanager
def serving(
    config: DistributedConfig,
    herder: Herder,
    admin: WorkerAdmin | None = None,
    journal: ChangeRecords | None = None,
) -> Iterator[RestServer]:
    """Serve over real sockets, on an event loop in a thread, until the block ends."""
    server = RestServer(config)
    server.bind()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="rest")
    thread.start()

    def run(coroutine: Any) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, loop).result(START_TIMEOUT_S)

    try:
        run(server.start(herder, admin, journal))
        yield server
    finally:
        run(server.stop(STOP_TIMEOUT_MS))
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
