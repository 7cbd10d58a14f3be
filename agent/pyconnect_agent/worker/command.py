"""Run a worker with the command's options.

Composition root. All faults of files are found here, before the worker starts.
"""

from __future__ import annotations

import argparse
import logging
from functools import partial

from pyconnect_agent.children.launch import Launcher
from pyconnect_agent.core.config.client_overrides import OverridePolicy
from pyconnect_agent.core.config.worker_config import (
    DistributedConfig,
    StandaloneConfig,
    WorkerConfig,
    worker_config_warnings,
)
from pyconnect_agent.core.errors import AgentError, WorkerConfigError, WorkerStartError
from pyconnect_agent.core.loggers import ROOT, parse_level
from pyconnect_agent.core.plugins.catalog import Catalog
from pyconnect_agent.files.config_file import read_properties_file
from pyconnect_agent.observability.logging import LogFormat, RuntimeLevels, configure_logging
from pyconnect_agent.worker.lifecycle import EXIT_CONFIG, EXIT_START, WorkerParts, run_worker
from pyconnect_agent.worker.plugins import (
    check_converters,
    check_rest_extensions,
    find_plugins,
    resolve_properties,
)
from pyconnect_agent.worker.standalone import create_connectors, read_connector_file
from pyconnect_agent.worker.stores import distributed_stores, standalone_stores
from pyconnect_api.errors import ConfigException, ConnectException

LOG = logging.getLogger(__name__)


def run(options: argparse.Namespace, launcher: Launcher) -> int:
    """Run the worker that `options` describe; returns the exit code."""
    log_format = LogFormat(options.log_format)
    levels = configure_logging(log_format=log_format)
    try:
        for text in options.log_level:
            name, _, level = text.rpartition("=")
            levels.set_level(name or ROOT, parse_level(level))
        parts = _parts(options, levels, log_format)
    except (ConfigException, ConnectException, WorkerConfigError) as error:
        reason = _about(options.worker_file, str(error))
        LOG.error("worker cannot run with this configuration", extra={"reason": reason})
        return EXIT_CONFIG
    except WorkerStartError as error:
        LOG.error("worker could not start", extra={"reason": error.message})
        return EXIT_START
    except AgentError as error:
        LOG.error("option cannot be used", extra={"reason": error.message})
        return EXIT_CONFIG
    return run_worker(parts, launcher)


def _about(file: str, text: str) -> str:
    """Put the file's name before a text that does not begin with it."""
    return text if text.startswith((f"{file}:", f"{file},")) else f"{file}: {text}"


def _parts(
    options: argparse.Namespace, levels: RuntimeLevels, log_format: LogFormat
) -> WorkerParts:
    if options.connector_files and not options.standalone:
        raise WorkerConfigError(
            "connector files are for a standalone worker: add --standalone, or create the"
            " connectors through REST"
        )
    file = read_properties_file(options.worker_file)
    raw = file.entries
    catalog = find_plugins(raw)
    properties = resolve_properties(raw, catalog)
    config = (StandaloneConfig if options.standalone else DistributedConfig).parse(properties)
    _check(config, catalog)
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


def _check(config: WorkerConfig, catalog: Catalog) -> None:
    """Raise ConfigException for unknown classes and policies; warn about keys without effect."""
    check_converters(catalog, config)
    check_rest_extensions(config)
    OverridePolicy.parse(config.connector_client_config_override_policy)
    for text in worker_config_warnings(config):
        LOG.warning("worker property", extra={"reason": text})
