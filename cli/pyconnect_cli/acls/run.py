"""The check of ACLs as one call, for `acls` and for `upgrade`."""

from __future__ import annotations

from pyconnect_cli.acls.gather import Gathered, gather
from pyconnect_cli.acls.options import AclOptions
from pyconnect_cli.acls.plan.check import AclReport, check
from pyconnect_cli.session import Session


def acl_report(session: Session, options: AclOptions) -> AclReport:
    """Return the needs of the phase of the options, each with its verdict.

    Asks workers, agents, and the brokers if they are known. UsageError when no worker's
    configuration is known: there are only Java workers, and no file of theirs was given.
    """
    return report_of(gather(session, options))


def report_of(gathered: Gathered) -> AclReport:
    return check(gathered.facts, gathered.phase, gathered.evidence)
