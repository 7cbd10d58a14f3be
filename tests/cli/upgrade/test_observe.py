"""The meaning of a Java worker's answers to a request to fence."""

from pyconnect_cli.upgrade.observe import PROBE, fences
from tests.support.cases import cases


@cases(
    "status, message, present",
    (400, "Internal request missing required signature", True),
    (404, f"Connector {PROBE} not found", True),
    (409, "Cannot complete request because of a conflicting operation", True),
    (503, "The leader has not distributed a session key yet", True),
    (404, "HTTP 404 Not Found", False),
    (401, "User cannot access the resource.", None),
    (403, "Forbidden", None),
)
def test_fencing_shows_by_its_refusals(status: int, message: str, *, present: bool | None) -> None:
    """A 404 of the router shows that fencing is missing; 401 and 403 show nothing."""
    assert fences(status, message) is present
