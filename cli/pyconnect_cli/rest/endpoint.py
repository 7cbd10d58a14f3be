"""Access to the workers: addresses, credentials, certificates, the time and the threads for it.

A run's budget covers all its requests and waits. Each request has its own limit, so that a worker
that accepts a connection and never answers takes one request's time and not the run's.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

from pyconnect_cli.errors import ContextError, UsageError
from pyconnect_cli.rest.masking import mask_url

if TYPE_CHECKING:
    import ssl
    from concurrent.futures import Future

DEFAULT_RUN_S = 120.0
DEFAULT_REQUEST_S = 10.0
LONG_REQUEST_S = 60.0
CONNECT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Time limits of a run and of each of its requests, in seconds.

    `long_request_s` is for requests that a worker works on before it answers: it runs a connector's
    own code (validation, a new configuration, a change of offsets), or asks its brokers.
    """

    run_s: float = DEFAULT_RUN_S
    request_s: float = DEFAULT_REQUEST_S
    long_request_s: float = LONG_REQUEST_S


@dataclass(frozen=True, slots=True)
class Allowance:
    """The time for one attempt of a request, and the option that sets it."""

    seconds: float
    option: str


class Budget:
    """The time that is left for a run. Shared by all its exchanges and threads."""

    def __init__(self, run_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._run_s = run_s
        self._clock = clock
        self._end = clock() + run_s
        self._last_end: float | None = None

    def remaining_s(self) -> float:
        """Return the time that is left; never negative."""
        end = self._end if self._last_end is None else min(self._end, self._last_end)
        return max(0.0, end - self._clock())

    @property
    def spent(self) -> bool:
        """Whether the time is over, so that no request may start."""
        return self.remaining_s() <= 0

    def renew(self, run_s: float | None = None) -> None:
        """Start the budget again, after a question to the user or a planned wait.

        `run_s` None: the same time as at first.
        """
        self._end = self._clock() + (self._run_s if run_s is None else run_s)

    def end_within(self, seconds: float) -> None:
        """Set the deadline of the whole run, which `renew` does not move."""
        self._last_end = self._clock() + seconds

    def attempt(self, limit_s: float, attempts: int = 1) -> Allowance:
        """Return the time for the next of `attempts`: at most an equal share of the time left."""
        share = self.remaining_s() / max(attempts, 1)
        if share < limit_s:
            return Allowance(share, "--timeout")
        return Allowance(limit_s, "--request-timeout")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Addresses, credentials and certificates. Its repr does not show secrets.

    `admins`: addresses of agents' admin interfaces by their REST addresses, where they differ.
    """

    urls: tuple[str, ...]
    admins: Mapping[str, str] = field(default_factory=dict)
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    cert: str | None = None
    key: str | None = None
    insecure: bool = False
    limits: Limits = field(default_factory=Limits)


def base_url(url: str) -> tuple[str, tuple[str, str] | None]:
    """Split `http://user:password@host:8083/path/` into its address and its credentials."""
    text = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as exc:
        raise UsageError(f"`{mask_url(url)}` is not an address: {exc}") from exc
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(
            f"`{mask_url(url)}` is not an address of a worker", hint="write http://host:8083"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    location = f"{host}:{port}" if port is not None else host
    address = urlunsplit((parts.scheme, location, parts.path.rstrip("/"), "", ""))
    if parts.username is None:
        return address, None
    return address, (unquote(parts.username), unquote(parts.password or ""))


def tls_context(endpoint: Endpoint) -> ssl.SSLContext:
    """Build the TLS context; ContextError names a file that cannot be used."""
    import ssl  # not for plain HTTP

    for what, path in (
        ("ca_file", endpoint.ca_file),
        ("cert", endpoint.cert),
        ("key", endpoint.key),
    ):
        if path:
            try:
                with open(path, "rb"):  # noqa: PTH123 - only whether it can be read
                    pass
            except OSError as exc:
                raise ContextError(f"{what} {path}: cannot be read: {exc.strerror}") from exc
    try:
        context = ssl.create_default_context(cafile=endpoint.ca_file)
        if endpoint.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if endpoint.cert:
            context.load_cert_chain(endpoint.cert, endpoint.key)
    except (ssl.SSLError, ValueError) as exc:
        raise ContextError(f"TLS: a certificate or key cannot be used: {exc}") from exc
    return context


@contextmanager
def ended_after(seconds: float, error: Exception) -> Iterator[None]:
    """Raise an error in the block when the time is over, by a signal: in the main thread only."""

    def over(_signal: int, _frame: object) -> None:
        raise error

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


Answer = TypeVar("Answer")


def in_background(work: Callable[[], Answer]) -> Future[Answer]:
    """Run `work` on a new thread; the future holds its result or its exception.

    The thread is a daemon: a second signal ends the command even while a request hangs.
    """
    from concurrent.futures import Future  # not before a request: it imports `logging`

    future: Future[Answer] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as fault:  # noqa: BLE001 - raised again by the future's owner
            future.set_exception(fault)

    threading.Thread(target=run, daemon=True).start()
    return future
