"""The options of `pyconnect upgrade`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyconnect_cli.acls.options import BROKER_OPTIONS, AclOptions, acl_options
from pyconnect_cli.acting.conditions import texts
from pyconnect_cli.errors import UsageError
from pyconnect_cli.parsing.options import OptionSpec
from pyconnect_cli.session import Session
from pyconnect_cli.settings.inventory import Inventory, read_inventory
from pyconnect_cli.upgrade.plan.checks import PhaseWish
from pyconnect_cli.verbs import ChangingVerb, Verb
from pyconnect_clients.phases import Phase

CLUSTER_OPTIONS = (
    OptionSpec(
        ("--inventory",), "inventory: the workers and the commands that change them", "FILE"
    ),
    OptionSpec(("--group",), "group.id of the workers (default: as the agents report it)", "NAME"),
)
TARGET_OPTIONS = (
    OptionSpec(
        ("--phase",), "target phase: disabled, preparing or enabled", "PHASE", choices=tuple(Phase)
    ),
    OptionSpec(("--worker",), "worker to change (default: all)", "URL", repeatable=True),
    OptionSpec(
        ("--full-stop",), "stop of all workers before the change; allows any change of phase"
    ),
    OptionSpec(("--direct",), "change from enabled to disabled in one rolling restart"),
    OptionSpec(("--hard",), "replacement of the software after disabled, one worker at a time"),
    OptionSpec(("--strict",), "refusal if a connector does not support exactly-once"),
)
CHECK_OPTIONS = (
    *BROKER_OPTIONS,
    OptionSpec(("--accept-unknown",), "no refusal because of ACLs that cannot be checked"),
    OptionSpec(
        ("--declared",), "confirmation that the Java workers' files have been checked by hand"
    ),
)


class ClusterVerb(ChangingVerb):
    """A command that needs the group of the workers."""

    shared_specs = (("Cluster", CLUSTER_OPTIONS),)


class PlanVerb(Verb):
    """A command that plans an upgrade."""

    shared_specs = (
        ("Target", TARGET_OPTIONS),
        ("Cluster", CLUSTER_OPTIONS),
        ("Checks", CHECK_OPTIONS),
    )


class RunVerb(PlanVerb, ChangingVerb):
    """The command that carries out an upgrade."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeOptions:
    """The requested change, and the user's knowledge of the cluster."""

    wish: PhaseWish
    inventory: Inventory
    acls: AclOptions
    group: str | None


def upgrade_options(session: Session, *, phase_needed: bool) -> UpgradeOptions:
    """Read the options, and let the session reach every worker of the inventory.

    UsageError for a file that cannot be read or options that exclude each other.
    """
    given = session.given
    phase = Phase(str(given["phase"])) if given.get("phase") else None
    if phase is None and phase_needed:
        raise UsageError(
            "the target phase is missing: --phase preparing, enabled or disabled",
            hint="show the last runs: pyconnect upgrade status",
        )
    if (given.get("hard") or given.get("direct")) and phase not in (None, Phase.DISABLED):
        raise UsageError("--hard and --direct need --phase disabled")
    path = given.get("inventory") or session.settings.inventory
    inventory = read_inventory(Path(str(path)).expanduser()) if path else Inventory()
    session.also_reach([inventory.address(url) for url in inventory.workers])
    files = (*inventory.worker_configs, *texts(given, "worker_config"))
    return UpgradeOptions(
        wish=PhaseWish(
            target=phase or Phase.DISABLED,
            direct=bool(given.get("direct")),
            full_stop=bool(given.get("full_stop")),
            hard=bool(given.get("hard")),
            only=tuple(worker_url(name) for name in texts(given, "worker")),
            inventory=inventory.workers,
            accept_unknown=bool(given.get("accept_unknown")),
            declared=bool(given.get("declared")),
            strict=bool(given.get("strict")),
        ),
        inventory=inventory,
        acls=acl_options({**given, "worker_config": files}),
        group=str(given["group"]) if given.get("group") else None,
    )


def worker_url(text: str) -> str:
    """Return a worker's address as it advertises it."""
    url = text.rstrip("/")
    return url if "://" in url else f"http://{url}"
