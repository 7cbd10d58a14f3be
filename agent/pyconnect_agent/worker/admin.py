"""The construction of the admin interface of one worker.

Composition root.
"""

from __future__ import annotations

from collections.abc import Callable

from pyconnect_agent.children.children import ChildProcesses
from pyconnect_agent.core.config.effective import effective_values
from pyconnect_agent.core.config.worker_config import DistributedConfig, WorkerConfig
from pyconnect_agent.herder.port import WorkerClock
from pyconnect_agent.herder.service import HerderService
from pyconnect_agent.herder.worker_admin import (
    AgentAdmin,
    PhaseChange,
    PhaseSettings,
    WorkerIdentity,
)
from pyconnect_agent.process.config_file import PhaseFile, PropertiesFile
from pyconnect_agent.process.restarting import restart_of
from pyconnect_agent.worker.acls import WorkerAcls
from pyconnect_clients.installation import version


def admin_interface(
    config: WorkerConfig,
    file: PropertiesFile,
    url: str,
    herder: HerderService,
    children: ChildProcesses,
    *,
    plugin_problems: tuple[str, ...],
    stop_and_run_again: Callable[[], None],
) -> AgentAdmin:
    """`url` is the advertised one; the worker counts as started now.

    `stop_and_run_again` stops the worker in order and runs its command again.
    """
    clock = WorkerClock()
    distributed = config if isinstance(config, DistributedConfig) else None
    support = distributed.exactly_once_source_support.value if distributed else None
    identity = WorkerIdentity(
        version=version(),
        started_ms=clock.now_ms(),
        url=url,
        group_id=distributed.group_id if distributed else None,
        exactly_once_source_support=support,
        config_file=file.path,
        config_sha256=file.sha256,
        config=effective_values(config, file.entries),
        plugin_problems=plugin_problems,
    )
    phase = PhaseChange(
        PhaseSettings(
            allowed=distributed is not None and distributed.agent_allow_phase_change,
            phase=support,
            sha256=file.sha256,
        ),
        PhaseFile(path=file.path),
        restart_of(config, stop_and_run_again),
    )
    acls = WorkerAcls(distributed) if distributed else None
    return AgentAdmin(identity, herder, children, phase, acls, now_ms=clock.now_ms)
