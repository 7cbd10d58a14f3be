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

from pyconnect_cli.errors import ExitCode, PyconnectError


class SandboxError(PyconnectError):
    """A server of the sandbox failed."""

    exit_code = ExitCode.SERVER_ERROR


class JavaUnavailable(SandboxError):
    """No Java, or one older than Kafka needs; raised by `java`."""

    exit_code = ExitCode.USAGE


class JarsUnavailable(SandboxError):
    """No way to get Kafka's jars, or a directory without them; raised by `jars`."""

    exit_code = ExitCode.USAGE


class JarResolutionFailed(SandboxError):
    """Maven or Ivy ran and failed; raised by `maven` and `ivy`."""


class InvalidSandboxRequest(SandboxError):
    """Options that cannot be satisfied together; raised by `lifecycle`."""

    exit_code = ExitCode.USAGE


class SandboxNotRunning(SandboxError):
    """Nothing of that name runs; raised by `lifecycle`."""

    exit_code = ExitCode.NOT_FOUND


class ServerExited(SandboxError):
    """A process ended before it answered; raised by `server`."""


class PortTaken(SandboxError):
    """The port that was asked for is in use; raised by `ports`."""

    exit_code = ExitCode.PRECONDITION


class ServerNotReady(SandboxError):
    """A process did not answer within its time; raised by `server`."""

    exit_code = ExitCode.TIMED_OUT
