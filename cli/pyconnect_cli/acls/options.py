"""Options that the verbs of `acls` have in common, and what they mean."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated

import typer

from pyconnect_cli.acls.plan.facts import Named
from pyconnect_cli.acls.plan.model import Role
from pyconnect_cli.errors import UsageError
from pyconnect_cli.rest.phases import Phase

PhaseOption = Annotated[
    str | None,
    typer.Option(
        "--phase",
        metavar="PHASE",
        help="phase to check: disabled, preparing or enabled (default: the phase after"
        " the workers' own)",
    ),
]
ConnectorsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--connector", metavar="NAME", help="connector to check; repeatable (default: all)"
    ),
]
WorkerConfigOption = Annotated[
    list[str] | None,
    typer.Option(
        "--worker-config",
        metavar="FILE",
        help="worker.properties file of a Java worker; repeatable",
    ),
]
WorkerPropertyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--worker-property",
        metavar="KEY=VALUE",
        help="worker property KEY=VALUE, instead of a file or over it; repeatable",
    ),
]
PrincipalOption = Annotated[
    list[str] | None,
    typer.Option(
        "--principal",
        metavar="[OWNER:]CLIENT=PRINCIPAL",
        help="principal of a client (worker, producer, consumer, admin) if the"
        " configuration does not show it",
    ),
]
TopicOption = Annotated[
    list[str] | None,
    typer.Option(
        "--topic", metavar="CONNECTOR=TOPIC", help="topic that a source writes to; repeatable"
    ),
]
HostOption = Annotated[
    list[str] | None,
    typer.Option(
        "--host",
        metavar="OWNER=ADDRESS",
        help="address from which a worker or connector connects to Kafka, for grants with a host",
    ),
]
SuperUserOption = Annotated[
    list[str] | None,
    typer.Option(
        "--super-user",
        metavar="PRINCIPAL",
        help="Kafka superuser principals (brokers do not report them)",
    ),
]
EveryoneOption = Annotated[
    bool,
    typer.Option(
        "--allow-everyone",
        help="brokers have allow.everyone.if.no.acl.found=true (brokers do not report it)",
    ),
]


ProbeOption = Annotated[
    bool,
    typer.Option(
        "--probe",
        help="check of grants by requests to the brokers with the clients of"
        " --worker-config, from this host; automatic if listing the ACLs is denied",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AclOptions:
    """Facts of the user that brokers or workers do not report."""

    connectors: tuple[str, ...] = ()
    worker_configs: tuple[str, ...] = ()
    worker_properties: tuple[tuple[str, str], ...] = ()
    principals: dict[Named, str] = field(default_factory=dict)
    topics: dict[str, tuple[str, ...]] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)
    super_users: frozenset[str] = frozenset()
    allow_everyone: bool = False
    probe: bool = False


def acl_options(
    *,
    connectors: Iterable[str] | None = None,
    worker_configs: Iterable[str] | None = None,
    worker_properties: Iterable[str] | None = None,
    principals: Iterable[str] | None = None,
    topics: Iterable[str] | None = None,
    hosts: Iterable[str] | None = None,
    super_users: Iterable[str] | None = None,
    allow_everyone: bool = False,
    probe: bool = False,
) -> AclOptions:
    """Read the options; UsageError names what cannot be read."""
    named = tuple(connectors or ())
    written: dict[str, tuple[str, ...]] = {}
    for text in topics or ():
        connector, topic = _pair(text, "--topic", "CONNECTOR=TOPIC")
        written[connector] = (*written.get(connector, ()), topic)
    return AclOptions(
        connectors=() if "all" in named else named,
        worker_configs=tuple(worker_configs or ()),
        worker_properties=tuple(
            _pair(text, "--worker-property", "KEY=VALUE") for text in worker_properties or ()
        ),
        principals=dict(_principal(text) for text in principals or ()),
        topics=written,
        hosts=dict(_pair(text, "--host", "OWNER=ADDRESS") for text in hosts or ()),
        super_users=frozenset(super_users or ()),
        allow_everyone=allow_everyone,
        probe=probe,
    )


def parse_phase(text: str | None) -> Phase | None:
    """Return the phase; UsageError for what is none."""
    if text is None:
        return None
    try:
        return Phase[text.strip().upper()]
    except KeyError as exc:
        raise UsageError(
            f"--phase: `{text}` is not a phase", hint="disabled, preparing or enabled"
        ) from exc


def _pair(text: str, option: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name and value):
        raise UsageError(f"{option}: `{text}` is not {form}")
    return name, value


def _principal(text: str) -> tuple[Named, str]:
    form = "[OWNER:]CLIENT=PRINCIPAL, as producer=User:alice or my-source:admin=User:bob"
    roles = {role.value: role for role in Role if role is not Role.TOOL}
    # Owners may hold `:`, as URLs do, and principals `=`, as names of certificates do.
    for found in re.finditer("=", text):
        owner, _, client = text[: found.start()].rpartition(":")
        principal = text[found.end() :]
        if client in roles and ":" in principal:
            return Named(owner or None, roles[client]), principal
    raise UsageError(f"--principal: `{text}` is not {form}")
