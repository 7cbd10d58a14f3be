"""A second cluster in one run: the one that `--to-context` names."""

from __future__ import annotations

from pyconnect_cli.parsing.options import GLOBAL_OPTIONS
from pyconnect_cli.session import Session

# Settings of the command line and of PYCONNECT_* variables that both clusters share. All others,
# such as credentials, belong to the first cluster and must not reach the second one.
OF_EVERY_CLUSTER = frozenset(
    {
        "output", "columns", "no_headers", "timeout", "request_timeout", "yes", "quiet",
        "verbose", "debug", "color", "no_color", "jq", "config",
    }
)  # fmt: skip
SECRET_VARIABLES = {"PYCONNECT_PASSWORD_ENV", "PYCONNECT_TOKEN_ENV"}


def session_of_context(session: Session, name: str) -> Session:
    """Return a session with another cluster: addresses, credentials and brokers are its own."""
    of_cluster = [option for option in GLOBAL_OPTIONS if option.name not in OF_EVERY_CLUSTER]
    variables = {option.env for option in of_cluster} | SECRET_VARIABLES
    other = Session({k: v for k, v in session.environ.items() if k not in variables})
    names = {option.name for option in of_cluster}
    other.given = {k: v for k, v in session.given.items() if k not in names} | {"context": name}
    other.arguments = session.arguments
    other.budget = session.budget
    return other
