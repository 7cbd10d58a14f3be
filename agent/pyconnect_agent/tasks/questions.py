"""One question, one answer: validate a config, describe a plugin, fence older tasks' producers.

Each question has a process of its own, which the worker process kills when it takes too long:
plugin code may hang, and configs may refer to secrets, which are resolved in children only.
"""

import logging
from collections.abc import Callable

from pyconnect_agent.channel import Message
from pyconnect_agent.channel.reports import (
    ConfigValidated,
    PluginDescribed,
    ProducersFenced,
    RequestFailed,
)
from pyconnect_agent.channel.requests import (
    DescribePluginJob,
    FenceProducersJob,
    ValidateConfigJob,
    WorkerSettings,
)
from pyconnect_agent.core.clients.configs import exactly_once_producer, fencing_producer
from pyconnect_agent.core.config.plugin_source import PluginSource
from pyconnect_agent.core.config.validation import connector_key_infos, validate_connector_config
from pyconnect_agent.core.errors import (
    AuthorizationError,
    BadRequestError,
    InternalError,
    NotFoundError,
    RequestError,
)
from pyconnect_agent.core.plugin_catalog import LISTED_KINDS, PluginKind, PluginVersionNotFoundError
from pyconnect_agent.kafka.errors import Deadline
from pyconnect_agent.kafka.fencing import fence
from pyconnect_agent.plugins.loading import instantiate
from pyconnect_agent.process.logging import mask_logs
from pyconnect_agent.tasks.trace import error_text, is_permanent, shortened
from pyconnect_agent.tasks.worker_view import KeptQuestions, WorkerView
from pyconnect_api import ConnectException

LOG = logging.getLogger(__name__)

DESCRIBED_KINDS = frozenset({*LISTED_KINDS, PluginKind.CONNECTOR})


def validate_config(job: ValidateConfigJob, kept: KeptQuestions | None = None) -> Message:
    """Return the result of a validation or the failure; never raises.

    `kept` holds the Java process for the next job.
    """

    def validated(worker: WorkerView) -> Message:
        resolved = worker.resolve(job.config)
        infos = validate_connector_config(
            resolved.resolution.values,
            plugins=worker.plugins_for(resolved.values),
            worker=worker.config,
            raw_config=job.config,
            secrets=resolved.resolution.secrets,
            process_errors=worker.process_errors(resolved.resolution.values),
        )
        return ConfigValidated(result=infos)

    return answer(job.worker, validated, kept)


def describe_plugin(job: DescribePluginJob) -> Message:
    """Return the description of a plugin or the failure; never raises."""

    def described(worker: WorkerView) -> Message:
        catalog = worker.catalog
        known = catalog.find(job.plugin)
        if not known:
            raise NotFoundError(f"Unknown plugin {job.plugin}.")
        kinds = [plugin.kind for plugin in known if plugin.kind in DESCRIBED_KINDS]
        if not kinds:
            raise BadRequestError(
                f"Invalid plugin class {job.plugin}. Valid types are sink, source, converter, "
                "header_converter, transformation, predicate."
            )
        wanted = None if job.version is None else f"[{job.version},{job.version}]"
        try:
            is_java = catalog.plugin(job.plugin, kinds[0], version_range=wanted).is_java
            plugins: PluginSource = worker.java_plugins({}) if is_java else worker.plugins
            found = plugins.plugin(job.plugin, kinds[0], wanted)
        except PluginVersionNotFoundError as exc:
            raise BadRequestError(str(exc)) from exc
        except ConnectException as exc:
            raise InternalError("Failed to load plugin class or one of its dependencies") from exc
        if kinds[0].is_connector:
            return PluginDescribed(keys=tuple(connector_key_infos(found, plugins)))
        definition = instantiate(found.python_class).config()  # type: ignore[attr-defined]  # all others have it
        return PluginDescribed(keys=tuple(definition.to_key_info()))

    return answer(job.worker, described)


def answer(
    settings: WorkerSettings,
    work: Callable[[WorkerView], Message],
    kept: KeptQuestions | None = None,
) -> Message:
    """Return the result of `work`, or its failure with values of config providers masked."""
    worker = None
    try:
        worker = WorkerView(settings.properties, settings.plugins, kept)
        mask_logs(worker.mask)
        return work(worker)
    except BaseException as exc:
        if not isinstance(exc, RequestError):
            LOG.error("request failed", exc_info=exc)
        name, text = type(exc).__name__, error_text(exc)
        if not isinstance(exc, RequestError):
            java_name = getattr(exc, "java_class", "") or getattr(type(exc), "java_name", None)
            text = text if java_name else f"{name}: {text}".removesuffix(": ")
            name = java_name or name
        return RequestFailed(
            request_id=0,
            error_class=name,
            message=shortened((str if worker is None else worker.mask)(text)),
            permanent=is_permanent(exc),
        )
    finally:
        if worker is not None:
            worker.close()


def fence_producers(job: FenceProducersJob) -> Message:
    """Fence the producers of older tasks; return a failure, never raise (KIP-618)."""

    def fenced(worker: WorkerView) -> Message:
        config = worker.resolve(job.connector_config).values
        client_id = f"connector-worker-adminclient-{job.connector}"
        # Changes of offsets use the producer's credentials, while fencing uses the admin client's.
        changing, tasks = (
            {
                each: configure(worker.config, config, client_id, each).build().properties
                for each in ids
            }
            for configure, ids in (
                (exactly_once_producer, job.ids_if_permitted),
                (fencing_producer, job.transactional_ids),
            )
        )
        deadline = Deadline(job.timeout_ms)
        LOG.info("fencing producers of older tasks", extra={"ids": len(tasks)})
        fence(tasks, deadline.remaining_ms())
        try:
            fence(changing, deadline.remaining_ms())
        except AuthorizationError as exc:
            LOG.info("id not fenced", extra={"reason": exc.message})
        return ProducersFenced()

    return answer(job.worker, fenced)
