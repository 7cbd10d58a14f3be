"""A worker from its start to its end: the parts, their order, signals, exit codes.

Composition root. Kafka: AbstractConnectCli, Connect, ConnectDistributed, ConnectStandalone. Start
order: sockets bound, the Kafka cluster's id, REST, herder, and for a standalone worker its
connectors; the fork server runs before. Stop order is the reverse, except that the herder
answers all requests first, so that REST does not have to wait for any. SIGTERM, SIGINT and SIGHUP
stop the worker in order; a second signal shortens the stop. The unexpected death of the herder or
of a REST server stops the worker in the same order.

Exit codes: 0 stopped on request; 1 a part died; 2 wrong configuration or topics; 3 the worker could
not start for an outside reason, or a connector of the command line could not be applied. RUN_AGAIN
is not an exit code of the process: the worker has changed its own properties and runs again.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyconnect_agent.channel.requests import WorkerSettings
from pyconnect_agent.children.children import ChildProcesses
from pyconnect_agent.children.launch import Launcher
from pyconnect_agent.children.logs import LogSettings
from pyconnect_agent.children.ports import ChildSettings
from pyconnect_agent.core.clients.configs import kafka_python_config, worker_admin
from pyconnect_agent.core.config.agent_keys import OPTIONS, option_words
from pyconnect_agent.core.config.worker_config import DistributedConfig, WorkerConfig
from pyconnect_agent.core.errors import AgentError, KafkaError, WorkerConfigError, WorkerStartError
from pyconnect_agent.core.group_protocol import ProtocolVersion
from pyconnect_agent.core.herder.requests import Probe
from pyconnect_agent.core.herder.state import HerderSettings, SessionKeySettings
from pyconnect_agent.core.offsets.source import own_topic
from pyconnect_agent.core.plugin_catalog import Catalog
from pyconnect_agent.core.reporting import ServerInfo
from pyconnect_agent.herder.connect_group import ConnectGroup, GroupOptions
from pyconnect_agent.herder.port import WorkerClock
from pyconnect_agent.herder.service import HerderOptions, HerderService, Stores
from pyconnect_agent.java_processes.launch import JavaOptions, remove_leftovers
from pyconnect_agent.kafka.admin import Admin
from pyconnect_agent.kafka.clients import client_arguments
from pyconnect_agent.kafka.group import MembershipSettings
from pyconnect_agent.process import long_lived, worker_process
from pyconnect_agent.process.config_file import PropertiesFile
from pyconnect_agent.process.logging import RuntimeLevels
from pyconnect_agent.rest.server import GRACEFUL_STOP_MS, RestServer
from pyconnect_agent.stores.journal import ChangeRecords
from pyconnect_agent.worker.acls import WorkerAcls
from pyconnect_agent.worker.admin import AgentAdmin
from pyconnect_agent.worker.plugins import connector_type
from pyconnect_agent.worker.stores import DEFAULT_API_TIMEOUT_MS, journal_of
from pyconnect_api.errors import ConfigException
from pyconnect_clients.installation import version

LOG = logging.getLogger(__name__)

OPEN_TIMEOUT_MS = 60_000


def distributed_settings(settings: HerderSettings, config: DistributedConfig) -> HerderSettings:
    """Return `settings`, which any worker has, with the group's settings."""
    return replace(
        settings,
        group_id=config.group_id,
        leader_transactional_id=config.leader_transactional_id,
        exactly_once_source=config.exactly_once_source_enabled,
        worker_sync_timeout_ms=config.worker_sync_timeout_ms,
        worker_unsync_backoff_ms=config.worker_unsync_backoff_ms,
        config_topic=config.config_storage_topic,
        scheduled_rebalance_max_delay_ms=config.scheduled_rebalance_max_delay_ms,
        session_key=SessionKeySettings(
            algorithm=config.inter_worker_key_generation_algorithm,
            size_bits=config.inter_worker_key_size,
            ttl_ms=config.inter_worker_key_ttl_ms,
        ),
    )


def group_options(config: DistributedConfig, worker_url: str) -> GroupOptions:
    """Return the group's options; WorkerConfigError for security that the client cannot use."""
    client_id = config.client_id or f"connect-{urlsplit(worker_url).netloc}"
    client = kafka_python_config(config.originals, client_id=client_id)
    for text in client.warnings:
        LOG.warning("group client setting", extra={"reason": text})
    return GroupOptions(
        membership=MembershipSettings(
            group_id=config.group_id,
            client=client_arguments(client),
            session_timeout_ms=config.session_timeout_ms,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
            rebalance_timeout_ms=config.rebalance_timeout_ms,
            request_timeout_ms=config.request_timeout_ms,
            retry_backoff_ms=config.retry_backoff_ms,
        ),
        worker_url=worker_url,
        protocol=ProtocolVersion[config.connect_protocol.name],
        scheduled_rebalance_max_delay_ms=config.scheduled_rebalance_max_delay_ms,
        open_timeout_ms=OPEN_TIMEOUT_MS,
        leader_ids=config.leader_ids,
    )


def server_info(release: str, kafka_cluster_id: str) -> ServerInfo:
    """Return the server's answer about itself.

    `version` is the release of Kafka Connect that the worker follows, because clients of Apache's
    workers check it for features. They do not read `commit`, which has the worker's own version.
    """
    return ServerInfo(
        version=release, commit=f"pyconnect-{version()}", kafka_cluster_id=kafka_cluster_id
    )


EXIT_DIED = 1
EXIT_CONFIG = 2
EXIT_START = 3
RUN_AGAIN = 64

JAVA_LEFTOVERS_S = 30.0
"""The interval between searches for temporary files of killed Java processes."""

LOOKUP_ATTEMPT_MS = 3_000
"""The longest request for the cluster's id, so that a signal can end the start."""

PROBE_MS = 10_000

AfterStart = Callable[[HerderService], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerParts:
    """The parts of one worker. `after_start` creates a standalone worker's connectors."""

    config: WorkerConfig
    file: PropertiesFile
    catalog: Catalog
    stores: Stores
    levels: RuntimeLevels
    log_format: str
    after_start: AfterStart | None = None


def run_worker(parts: WorkerParts, launcher: Launcher) -> int:
    """Run until a signal or until a part dies; return the exit code."""
    worker_process.use_one_heap()
    return asyncio.run(Worker(parts, launcher).run())


class Worker:
    """One worker. A process makes it once and calls `run` once."""

    def __init__(self, parts: WorkerParts, launcher: Launcher) -> None:
        self._parts = parts
        self._launcher = launcher
        self._stop_requested = asyncio.Event()
        self._hurry = asyncio.Event()
        self._restarts = False
        self._manager = worker_process.ServiceManager.of(os.environ, os.getpid())
        config = parts.config
        self._acls = WorkerAcls(config) if isinstance(config, DistributedConfig) else None

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled, number)
        # A closed terminal stops a worker, as it stops a JVM, but not under nohup.
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            loop.add_signal_handler(signal.SIGHUP, self._signalled, signal.SIGHUP)
        alive = long_lived.start_task("watchdog", self._manager.report_alive())
        try:
            await self._run()
        except (WorkerConfigError, ConfigException) as error:
            LOG.error("worker cannot run with this configuration", extra={"reason": str(error)})
            return EXIT_CONFIG
        except WorkerStartError as error:
            LOG.error("worker could not start", extra={"reason": error.message})
            return EXIT_START
        except _StopRequestedError:
            LOG.info("worker was stopped before it had started")
        # The last resort: every exception of a part is logged and gives the exit code.
        except Exception:
            LOG.exception("worker has stopped because one of its parts died")
            return EXIT_DIED
        finally:
            alive.cancel()
        LOG.info("worker has stopped")
        return RUN_AGAIN if self._restarts else 0

    async def _run(self) -> None:
        """Start all parts, wait for a signal, stop all parts; raise the error that ended a part."""
        parts = self._parts
        rest = RestServer(parts.config)
        rest.bind()
        url = rest.advertised_url
        children = ChildProcesses(
            self._child_settings(), parts.stores.offset, launcher=self._launcher
        )
        await children.start()
        try:
            cluster_id = await self._kafka_cluster_id()
        except BaseException:
            await children.stop(hurry=True)
            raise
        clock = WorkerClock()
        herder = HerderService(
            self._herder_options(url, cluster_id),
            stores=parts.stores,
            children=children,
            catalog=parts.catalog,
            levels=parts.levels,
            clock=clock,
            client=rest.client,
        )
        journal = journal_of(parts.config)
        children.connect(herder.child_listener, confirmed_s=herder.confirmed_s)
        herding = asyncio.create_task(herder.run(), name="herder")
        keeping_low = long_lived.start_task("memory", worker_process.keep_low())
        cleaning = long_lived.start_task("java leftovers", self._remove_java_leftovers())
        try:
            admin = AgentAdmin(
                parts.config,
                parts.file,
                url,
                herder,
                children,
                acls=self._acls,
                plugin_problems=parts.catalog.problems,
                stop_and_run_again=self.stop_and_run_again,
                now_ms=clock.now_ms,
            )
            await rest.start(herder, admin, journal)
            await self._while_alive(self._start(herder, journal), herding, rest)
            LOG.info("worker has started", extra={"url": url})
            probe = partial(herder.submit, Probe(), timeout_ms=PROBE_MS)
            reporting = long_lived.start_task("readiness", self._manager.report_ready(probe))
            try:
                await self._while_alive(self._stop_requested.wait(), herding, rest)
            finally:
                reporting.cancel()
        finally:
            keeping_low.cancel()
            cleaning.cancel()
            await self._stop(herder, herding, rest)
            if journal is not None:
                await asyncio.to_thread(journal.stop)

    async def _remove_java_leftovers(self) -> None:
        """Remove temporary files of killed Java processes, also of earlier runs of the worker."""
        options = self._parts.config.originals.get(OPTIONS) or ""
        base = JavaOptions(options=option_words(options)).temporary_base()
        while self._parts.catalog.java.plugins:
            await asyncio.to_thread(remove_leftovers, base)
            await asyncio.sleep(JAVA_LEFTOVERS_S)

    async def _start(self, herder: HerderService, journal: ChangeRecords | None) -> None:
        if self._acls is not None:
            await asyncio.to_thread(self._acls.check_start)
        if journal is not None:
            await asyncio.to_thread(journal.start)
        await herder.start()
        if self._parts.after_start is not None:
            await self._parts.after_start(herder)
        herder.announce_ready()

    async def _while_alive(
        self, work: Coroutine[Any, Any, Any], herding: asyncio.Task[None], rest: RestServer
    ) -> None:
        """Await `work`; raise _StopRequestedError or a part's error if that comes first."""
        tasks = {
            "work": asyncio.create_task(work),
            "rest": asyncio.create_task(rest.wait(), name="rest"),
            "stop": asyncio.create_task(self._stop_requested.wait()),
        }
        try:
            await asyncio.wait({*tasks.values(), herding}, return_when=asyncio.FIRST_COMPLETED)
            if herding.done():
                herding.result()
            if tasks["work"].done():
                tasks["work"].result()
            elif tasks["rest"].done():
                tasks["rest"].result()
                raise WorkerDiedError("The REST server ended without a request to stop")
            else:
                raise _StopRequestedError
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)

    async def _stop(
        self, herder: HerderService, herding: asyncio.Task[None], rest: RestServer
    ) -> None:
        LOG.info("worker is stopping")
        if self._restarts:
            self._manager.reloading()
        else:
            self._manager.notify(worker_process.STOPPING)
        await herder.drain(hurry=self._hurry)
        await rest.stop(0 if self._hurry.is_set() else GRACEFUL_STOP_MS)
        herding.cancel()
        await asyncio.gather(herding, return_exceptions=True)
        await herder.close()

    def _signalled(self, number: signal.Signals) -> None:
        if self._restarts:
            # The worker is already stopping for a restart, which the signal cancels.
            self._restarts = False
            self._manager.notify(worker_process.STOPPING)
            LOG.info("signalled: stopping, no restart", extra={"signal": number.name})
        elif self._stop_requested.is_set():
            LOG.warning("signalled again: killing the children", extra={"signal": number.name})
            self._hurry.set()
        else:
            LOG.info("signalled: stopping", extra={"signal": number.name})
            self._stop_requested.set()

    def stop_and_run_again(self) -> None:
        """Stop as for a signal, then run again, unless a signal came earlier."""
        if not self._stop_requested.is_set():
            self._restarts = True
            self._stop_requested.set()

    async def _kafka_cluster_id(self) -> str:
        """Return the cluster's id; the request also finds an unreachable cluster early."""
        config = self._parts.config
        client = worker_admin(config, "connect-cluster-lookup").build()
        servers = ",".join(config.bootstrap_servers)
        LOG.info("looking up the Kafka cluster", extra={"bootstrap_servers": servers})
        timeout_ms = client.default_api_timeout_ms or DEFAULT_API_TIMEOUT_MS
        deadline_s = asyncio.get_running_loop().time() + timeout_ms / 1000
        admin = await asyncio.to_thread(Admin, client.properties)
        while True:
            if self._stop_requested.is_set():
                raise _StopRequestedError
            remaining_ms = round((deadline_s - asyncio.get_running_loop().time()) * 1000)
            attempt_ms = max(1, min(LOOKUP_ATTEMPT_MS, remaining_ms))
            try:
                return await asyncio.to_thread(admin.cluster_id, attempt_ms) or ""
            except KafkaError as error:
                if error.retriable and remaining_ms > attempt_ms:
                    continue
                raise WorkerStartError(
                    "Failed to connect to and describe the Kafka cluster at"
                    f" bootstrap.servers={servers} within {timeout_ms} ms ({error.message})."
                    " Check that the brokers run, their addresses, and the worker's security"
                    " properties."
                ) from error

    def _child_settings(self) -> ChildSettings:
        parts = self._parts
        log_dir = parts.config.agent_log_dir
        return ChildSettings(
            worker=WorkerSettings(
                properties=dict(parts.config.originals),
                plugins=parts.catalog.plugins,
                levels=parts.levels.levels(),
                log_format=parts.log_format,
            ),
            task_shutdown_graceful_timeout_ms=parts.config.task_shutdown_graceful_timeout_ms,
            sampling=parts.config.sampling,
            agent_keys=parts.config.agent_keys,
            logs=LogSettings(
                kept_bytes=parts.config.agent_log_kept_bytes,
                directory=Path(log_dir) if log_dir else None,
                file_bytes=parts.config.agent_log_file_bytes,
                files=parts.config.agent_log_file_count,
            ),
            # A group of one has no session that can expire.
            lease_ms=(
                parts.config.session_timeout_ms
                if isinstance(parts.config, DistributedConfig)
                else None
            ),
        )

    def _herder_options(self, url: str, cluster_id: str) -> HerderOptions:
        config, catalog = self._parts.config, self._parts.catalog
        distributed = config if isinstance(config, DistributedConfig) else None
        settings = HerderSettings(
            worker_id=urlsplit(url).netloc,
            connector_type=lambda found: connector_type(catalog, found),
            standalone=distributed is None,
            agent_keys=config.agent_keys,
        )
        options = HerderOptions(
            settings=settings,
            worker_url=url,
            server=server_info(config.agent_connect_release, cluster_id),
            track_topics=config.topic_tracking_enable,
            permitted_algorithms=None,
            sampling=config.sampling,
        )
        if distributed is None:
            return options
        return replace(
            options,
            settings=distributed_settings(settings, distributed),
            permitted_algorithms=distributed.inter_worker_verification_algorithms,
            signature_algorithm=distributed.inter_worker_signature_algorithm,
            make_group=partial(ConnectGroup, group_options(distributed, url)),
            may_have_own_offsets_topic=lambda found: own_topic(distributed, found) is not None,
        )


class WorkerDiedError(AgentError):
    """A part of the worker ended without a request to stop."""


class _StopRequestedError(Exception):
    """A signal came before the worker had started."""
