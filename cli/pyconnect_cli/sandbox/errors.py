"""Errors of the sandbox.

PyconnectError
└── SandboxError                   10  a server of the sandbox failed
    ├── JavaUnavailable             2  no Java, or one older than Kafka needs
    ├── JarsUnavailable             2  no way to get Kafka's jars
    ├── JarResolutionFailed        10  Maven or Ivy ran and failed
    ├── InvalidSandboxRequest       2  options that cannot be satisfied together
    ├── SandboxNotRunning           3  nothing of that name runs
    ├── ServerExited               10  a process ended before it answered
    ├── PortTaken                   9  the port that was asked for is in use
    └── ServerNotReady            124  a process did not answer within its time
"""

from __future__ import annotations

from pyconnect_cli.errors import PyconnectError


class SandboxError(PyconnectError):
    """A server of the sandbox failed."""

    def __init__(self, message: str, *, hint: str | None = None, exit_code: int = 10) -> None:
        super().__init__(message, hint=hint, exit_code=exit_code)


class JavaUnavailable(SandboxError):
    """No Java, or one older than Kafka needs; raised by `java`."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message, hint=hint, exit_code=2)


class JarsUnavailable(SandboxError):
    """No way to get Kafka's jars, or a directory without them; raised by `jars`."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message, hint=hint, exit_code=2)


class JarResolutionFailed(SandboxError):
    """Maven or Ivy ran and failed; raised by `maven` and `ivy`."""


class InvalidSandboxRequest(SandboxError):
    """Options that cannot be satisfied together; raised by `environment`."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint, exit_code=2)


class SandboxNotRunning(SandboxError):
    """Nothing of that name runs; raised by `environment`."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint, exit_code=3)


class ServerExited(SandboxError):
    """A process ended before it answered; raised by `server`."""


class PortTaken(SandboxError):
    """The port that was asked for is in use; raised by `ports`."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint, exit_code=9)


class ServerNotReady(SandboxError):
    """A process did not answer within its time; raised by `server`."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint, exit_code=124)
