"""Options that the verbs of `acls` have in common, and their values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyconnect_cli.acting.selection import texts
from pyconnect_cli.errors import UsageError
from pyconnect_cli.parsing.options import CRON_OPTIONS, option_specs
from pyconnect_cli.verbs import CronVerb, Verb
from pyconnect_clients.acls.model import Role
from pyconnect_clients.acls.needs import Named
from pyconnect_clients.connect_names import Phase

BROKER_OPTIONS = option_specs("""
--worker-config  FILE  repeatable
    worker.properties file of a Java worker
--super-user  PRINCIPAL  repeatable
    Kafka superuser principal (brokers do not report them)
--allow-everyone
    brokers have allow.everyone.if.no.acl.found=true (brokers do not report it)
--probe
    test of each grant by a harmless request from this host with the clients of --worker-config
    (default: only if listing the ACLs is denied)
""")
ACL_OPTIONS = (
    *option_specs(
        """
--phase  PHASE
    phase of exactly-once that needs the grants: disabled, preparing or enabled (default: the
    phase after the workers' own)
--connector  NAME  repeatable
    connector (default: all)
--worker-property  KEY=VALUE  repeatable
    worker property, instead of a file or over it
--principal  [OWNER:]CLIENT=PRINCIPAL  repeatable
    principal of a client (worker, producer, consumer, admin) if the configuration does not
    show it
--topic  CONNECTOR=TOPIC  repeatable
    topic that a source writes to
--host  OWNER=ADDRESS  repeatable
    address from which a worker or connector connects to Kafka, for grants that are limited to
    hosts
""",
        {"--phase": tuple(Phase)},
    ),
    *BROKER_OPTIONS,
)


class AclVerb(Verb):
    """A command about the grants of one phase."""

    shared_specs = (("Grants", ACL_OPTIONS),)


class AclCheckVerb(CronVerb):
    """A command that judges the grants of one phase, also by cron."""

    shared_specs = (*AclVerb.shared_specs, ("Cron", CRON_OPTIONS))


class GrantsVerb(AclVerb):
    """A command that prints grants, in the forms of several tools."""

    formats = ("kafka-acls", "strimzi", "terraform")


@dataclass(frozen=True, slots=True, kw_only=True)
class AclOptions:
    """The phase, and facts of the user that brokers or workers do not report."""

    phase: Phase | None = None
    connectors: tuple[str, ...] = ()
    worker_configs: tuple[str, ...] = ()
    worker_properties: tuple[tuple[str, str], ...] = ()
    principals: dict[Named, str] = field(default_factory=dict)
    topics: dict[str, tuple[str, ...]] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)
    super_users: frozenset[str] = frozenset()
    allow_everyone: bool = False
    probe: bool = False


def acl_options(given: Mapping[str, object]) -> AclOptions:
    """Read the options; UsageError names the option that cannot be read."""
    named = texts(given, "connector")
    roles = {role.value: role for role in Role if role is not Role.TOOL}
    principals = {}
    for text in texts(given, "principal"):
        # Owners may hold `:`, as URLs do, and principals `=`, as names of certificates do.
        for found in re.finditer("=", text):
            owner, _, client = text[: found.start()].rpartition(":")
            principal = text[found.end() :]
            if client in roles and ":" in principal:
                principals[Named(owner or None, roles[client])] = principal
                break
        else:
            form = "[OWNER:]CLIENT=PRINCIPAL, as producer=User:alice or my-source:admin=User:bob"
            raise UsageError(f"--principal: `{text}` is not {form}")
    written: dict[str, tuple[str, ...]] = {}
    for text in texts(given, "topic"):
        connector, topic = _pair(text, "--topic", "CONNECTOR=TOPIC")
        written[connector] = (*written.get(connector, ()), topic)
    return AclOptions(
        phase=Phase(str(given["phase"])) if given.get("phase") else None,
        connectors=() if "all" in named else named,
        worker_configs=texts(given, "worker_config"),
        worker_properties=tuple(
            _pair(text, "--worker-property", "KEY=VALUE")
            for text in texts(given, "worker_property")
        ),
        principals=principals,
        topics=written,
        hosts=dict(_pair(text, "--host", "OWNER=ADDRESS") for text in texts(given, "host")),
        super_users=frozenset(texts(given, "super_user")),
        allow_everyone=bool(given.get("allow_everyone")),
        probe=bool(given.get("probe")),
    )


def _pair(text: str, option: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name and value):
        raise UsageError(f"{option}: `{text}` is not {form}")
    return name, value
