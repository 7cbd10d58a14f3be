"""The check of ACLs as one call, for `acls` and for what must not go on without it."""

from __future__ import annotations

from pyconnect_cli.acls.gather import Gathered, gather
from pyconnect_cli.acls.options import AclOptions
from pyconnect_cli.acls.plan.check import AclReport, check
from pyconnect_cli.session import Session


def acl_report(session: Session, options: AclOptions) -> AclReport:
    """Return what the phase of the options needs and what of it is there.

    Asks workers, agents, and the brokers when they are known. UsageError when no worker's
    configuration is known: there are only Java workers, and no file of theirs was given.
    """
    return report_of(gather(session, options))


def report_of(gathered: Gathered) -> AclReport:
    """Judge what was gathered."""
    return check(gathered.facts, gathered.phase, gathered.evidence)
