"""The process that all children are forked from, and the few bytes it is spoken to with.

Layer: supervise. It has imported the task host and the Kafka client once, so a child starts in
milliseconds and shares that memory. Kafka: none, a Java worker runs its plugins in threads. Unlike
`multiprocessing`'s this one may itself be a fork of the supervisor, whose memory it then shares,
and it needs no process that tracks resources.

| who → whom | what |
|---|---|
| supervisor → server | one byte and two descriptors: the child's end of its pipe, a *fate* pipe |
| server → fate | the child's pid, or -errno when there is none; at its end the exit code |

Numbers are signed, 8 bytes. The server ends when the supervisor's socket does. Threading: it has
one thread and no clients, as a fork copies locks that other threads hold.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

NUMBER = struct.Struct("<q")
REQUEST = b"\x00"
DESCRIPTORS = 2


def serve(requests: socket.socket, host: str, preload: Sequence[str]) -> NoReturn:
    """Fork a child for each request until there can be no more; `host` is `module:function`."""
    code = 1
    try:
        # Service managers send SIGTERM to every process of the worker, terminals SIGINT and SIGHUP.
        # This one must outlive the children, which stop in the supervisor's order and set a
        # meaning of SIGTERM of their own.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for module in preload:
            importlib.import_module(module)
        _silence_standard_input()
        freeze()
        _Server(requests, host).run()
        code = 0
    except BaseException:  # noqa: BLE001  nobody is left to take it
        traceback.print_exc()
    finally:
        os._exit(code)


def freeze() -> None:
    """Keep what is loaded out of later collections, which would only copy its shared pages."""
    gc.collect()
    gc.freeze()


def main(arguments: Sequence[str]) -> NoReturn:
    """Serve as a process of its own: descriptor, `sys.path` in JSON, host, modules to preload."""
    number, path, host, *preload = arguments
    descriptor = int(number)
    # What a client library has open in the supervisor is inherited.
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, os.sysconf("SC_OPEN_MAX"))
    sys.path[:] = json.loads(path)
    serve(socket.socket(fileno=descriptor), host, preload)


def read_number(fate: int) -> int | None:
    """Read what the server told; None when it ended without."""
    told = os.read(fate, NUMBER.size)
    if not told:
        return None
    number: int = NUMBER.unpack(told)[0]
    return number


class _Server:
    def __init__(self, requests: socket.socket, host: str) -> None:
        self._requests = requests
        self._host = host
        self._fates: dict[int, int] = {}
        self._woken, self._wake = os.pipe()

    def run(self) -> None:
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        # Not epoll, which would be a descriptor more that each child inherits.
        with selectors.PollSelector() as selector:
            selector.register(self._requests, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                if self._woken in ready:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._woken, 4096)
                    self._reap()
                if self._requests in ready and not self._serve_request():
                    return

    def _serve_request(self) -> bool:
        """False when the supervisor is gone."""
        request, descriptors, _, _ = socket.recv_fds(self._requests, len(REQUEST), DESCRIPTORS)
        if not request:
            return False
        pipe, fate = descriptors
        try:
            pid = os.fork()
        except OSError as exc:
            _tell(fate, -(exc.errno or errno.EAGAIN))
            os.close(fate)
        else:
            if pid == 0:
                self._become_child(pipe, fate)
            self._fates[pid] = fate
            _tell(fate, pid)
        os.close(pipe)
        return True

    def _reap(self) -> None:
        while self._fates:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            fate = self._fates.pop(pid)
            _tell(fate, os.waitstatus_to_exitcode(status))
            os.close(fate)

    def _become_child(self, pipe: int, fate: int) -> NoReturn:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._requests.close()
            for descriptor in (self._woken, self._wake, fate, *self._fates.values()):
                os.close(descriptor)
            module, _, function = self._host.partition(":")
            getattr(importlib.import_module(module), function)(socket.socket(fileno=pipe))
            code = 0
        except BaseException:  # noqa: BLE001  nobody is left to take it
            traceback.print_exc()
        finally:
            os._exit(code)


def _tell(fate: int, number: int) -> None:
    # Nobody may want to know any more.
    with contextlib.suppress(BrokenPipeError):
        os.write(fate, NUMBER.pack(number))


def _silence_standard_input() -> None:
    """Let no child read what another one is to read, or the supervisor."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    if nothing != 0:
        os.close(nothing)


if __name__ == "__main__":
    main(sys.argv[1:])
