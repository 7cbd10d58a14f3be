"""Run a worker with the command's options.

Composition root. All faults of files are found here, before the worker starts.

The file of a standalone connector is read as a flat JSON object of strings, as the JSON of
`POST /connectors`, or as Java properties, in this order (Kafka: ConnectStandalone).
"""

import argparse
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyconnect_agent.children.launch import Launcher
from pyconnect_agent.core.config.client_overrides import OverridePolicy
from pyconnect_agent.core.config.connector_config import require_addressable
from pyconnect_agent.core.config.worker_config import (
    DistributedConfig,
    StandaloneConfig,
    worker_config_warnings,
)
from pyconnect_agent.core.errors import (
    AgentError,
    RequestError,
    WorkerConfigError,
    WorkerStartError,
)
from pyconnect_agent.core.herder.requests import PutConnectorConfig
from pyconnect_agent.core.ids import INITIAL_STATES, TargetState
from pyconnect_agent.core.java_text import json_text
from pyconnect_agent.core.log_lines import ROOT, parse_level
from pyconnect_agent.herder.port import Herder
from pyconnect_agent.process.config_file import load_properties, read_properties_file
from pyconnect_agent.process.logging import LogFormat, RuntimeLevels, configure_logging
from pyconnect_agent.worker.lifecycle import EXIT_CONFIG, EXIT_START, WorkerParts, run_worker
from pyconnect_agent.worker.plugins import (
    check_converters,
    check_rest_extensions,
    find_plugins,
    resolve_properties,
)
from pyconnect_agent.worker.stores import distributed_stores, standalone_stores
from pyconnect_api.errors import ConfigException, ConnectException

APPLY_TIMEOUT_MS = 90_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StandaloneConnector:
    """A connector as a file describes it; `config` includes its name."""

    path: Path
    name: str
    config: Mapping[str, str | None]
    initial_state: TargetState | None = None


def read_connector_file(path: str | Path) -> StandaloneConnector:
    """Return the connector that a file describes.

    WorkerStartError if the file describes none, with Apache's text if Apache has one.
    """
    file = Path(path)
    try:
        content: Any = json_text.loads(file.read_bytes())
    except (OSError, ValueError):
        content = None
    is_object = isinstance(content, dict)
    is_request = is_object and isinstance(content.get("config"), dict)
    is_flat = is_object and all(isinstance(value, str) for value in content.values())
    if not is_request and not is_flat:
        try:
            content = load_properties(file)
        except ConfigException as error:
            raise WorkerStartError(str(error)) from error
    name = content.get("name")
    if not isinstance(name, str):
        raise WorkerStartError(
            f"Connector configuration at '{file}' is missing the mandatory 'name' configuration"
        )
    if not is_request:
        return StandaloneConnector(path=file, name=name, config=content)
    # Scalars become their JSON text, as in the REST layer.
    config = {
        key: value if value is None or isinstance(value, str) else json_text.dumps(value).decode()
        for key, value in content["config"].items()
    }
    if config.setdefault("name", name) != name:
        raise WorkerStartError(
            "Connector name configuration in 'config' doesn't match the one specified in 'name' at"
            f" '{file}'"
        )
    text = content.get("initial_state")
    state = None if text is None else INITIAL_STATES.get(str(text).upper())
    if text is not None and state is None:
        raise WorkerStartError(
            f"Initial state '{text}' of the connector at '{file}' is not RUNNING, PAUSED or STOPPED"
        )
    return StandaloneConnector(path=file, name=name, config=config, initial_state=state)


async def create_connectors(herder: Herder, files: Sequence[StandaloneConnector]) -> None:
    """Create all connectors in order; WorkerStartError, with the file, for the first that fails."""
    for file in files:
        try:
            require_addressable(file.name)
            request = PutConnectorConfig(
                connector=file.name,
                config=file.config,
                initial_state=file.initial_state,
                allow_replace=False,
            )
            await herder.submit(request, timeout_ms=APPLY_TIMEOUT_MS)
        except RequestError as error:
            raise WorkerStartError(
                f"Failed to create connector for {file.path}: {error.message}"
            ) from error
        LOG.info("created connector", extra={"connector": file.name, "file": str(file.path)})


LOG = logging.getLogger(__name__)


def run(options: argparse.Namespace, launcher: Launcher) -> int:
    """Run the worker that `options` describe; return the exit code."""
    log_format = LogFormat(options.log_format)
    levels = configure_logging(log_format=log_format)
    try:
        for text in options.log_level:
            name, _, level = text.rpartition("=")
            levels.set_level(name or ROOT, parse_level(level))
        parts = _parts(options, levels, log_format)
    except (ConfigException, ConnectException, WorkerConfigError) as error:
        file, reason = options.worker_file, str(error)
        if not reason.startswith((f"{file}:", f"{file},")):
            reason = f"{file}: {reason}"
        LOG.error("worker cannot run with this configuration", extra={"reason": reason})
        return EXIT_CONFIG
    except WorkerStartError as error:
        LOG.error("worker could not start", extra={"reason": error.message})
        return EXIT_START
    except AgentError as error:
        LOG.error("option cannot be used", extra={"reason": error.message})
        return EXIT_CONFIG
    return run_worker(parts, launcher)


def _parts(
    options: argparse.Namespace, levels: RuntimeLevels, log_format: LogFormat
) -> WorkerParts:
    if options.connector_files and not options.standalone:
        raise WorkerConfigError(
            "connector files are for a standalone worker: add --standalone, or create the"
            " connectors through REST"
        )
    file = read_properties_file(options.worker_file)
    catalog = find_plugins(file.entries)
    properties = resolve_properties(file.entries, catalog)
    config = (StandaloneConfig if options.standalone else DistributedConfig).parse(properties)
    check_converters(catalog, config)
    check_rest_extensions(config)
    OverridePolicy.parse(config.connector_client_config_override_policy)
    for text in worker_config_warnings(config):
        LOG.warning("worker property", extra={"reason": text})
    files = [read_connector_file(path) for path in options.connector_files]
    return WorkerParts(
        config=config,
        file=file,
        catalog=catalog,
        stores=distributed_stores(config)
        if isinstance(config, DistributedConfig)
        else standalone_stores(config),
        levels=levels,
        log_format=log_format.value,
        after_start=partial(create_connectors, files=files) if options.standalone else None,
    )
