"""Errors of the sandbox, each with the exit code of the command that it ends."""


class SandboxError(Exception):
    """A server of the sandbox failed. `hint`: what the user can do next."""

    exit_code: int = 10

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class JavaUnavailable(SandboxError):
    """There is no Java, or it is older than Kafka needs; raised by `java`."""

    exit_code = 9


class JarsUnavailable(SandboxError):
    """There is no way to get jars, or a directory lacks them; raised by `jars` and `repository`."""

    exit_code = 9


class JarResolutionFailed(SandboxError):
    """A jar was not downloaded or has other contents; raised by `repository` and `jar_cache`."""


class InvalidSandboxRequest(SandboxError):
    """Options that cannot be satisfied together; raised by `lifecycle`."""

    exit_code = 2


class SandboxNotRunning(SandboxError):
    """No sandbox of that name runs; raised by `lifecycle`."""

    exit_code = 3


class ServerExited(SandboxError):
    """A process ended before it answered; raised by `server`."""


class PortTaken(SandboxError):
    """The requested port is in use; raised by `ports`."""

    exit_code = 9


class ServerNotReady(SandboxError):
    """A process did not answer within its time; raised by `server`."""

    exit_code = 124
