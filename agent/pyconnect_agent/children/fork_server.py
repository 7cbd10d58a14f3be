"""The process that all children are forked from, and its few messages.

The fork server has imported the task host and the Kafka client once, so a child starts in
milliseconds and shares that memory. Kafka has no counterpart: a Java worker runs its plugins in
threads. Unlike the fork server of `multiprocessing`, this one may be a fork of the worker process
and share its memory, and it needs no process that tracks resources.

| sender → receiver | message |
|---|---|
| worker process → server | one byte and two descriptors: the child's end of its pipe, a *fate* pipe
|
| server → fate | the child's pid, or -errno when there is none |
| server → fate, at the child's end | the exit code, then the child's *last words* as UTF-8 |
| server → worker process, if the server fails | the traceback as UTF-8 |

Numbers are signed, 8 bytes. The server ends when the worker process's socket does. The server has
one thread and no clients, as a fork copies locks that other threads hold.

Last words give the reason of a process's end. Each child has a memory file for them, which the
server reads once the child is gone: the traceback of an exception, or the report of faulthandler at
a fatal signal. Unlike a message of the channel, last words do not need a working interpreter.
"""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple, NoReturn

from pyconnect_agent.channel import LAST_WORDS_BYTES, NUMBER

REQUEST = b"\x00"
DESCRIPTORS = 2
_LEFT_OUT = b"\n[...]\n"


def serve(requests: socket.socket, host: str, preload: Sequence[str]) -> NoReturn:
    """Fork a child for each request until the worker process is gone.

    `host` is `module:function`; the function is called with the child's end of the pipe and the
    descriptor for its last words.
    """
    code = 1
    try:
        # Service managers send SIGTERM to every process of the worker, terminals SIGINT and SIGHUP.
        # The server must outlive the children, which stop in the worker process's order and install
        # their own handler of SIGTERM.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for module in preload:
            importlib.import_module(module)
        # Otherwise children and the worker process would share standard input.
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        if nothing != 0:
            os.close(nothing)
        freeze()
        _Server(requests, host).run()
        code = 0
    except BaseException:  # noqa: BLE001  there is no caller left
        text = traceback.format_exc()
        with contextlib.suppress(OSError):
            requests.sendall(text.encode(errors="backslashreplace"))
        _print(text)
    finally:
        os._exit(code)


def freeze() -> None:
    """Exclude loaded objects from later collections, which would copy their shared pages."""
    gc.collect()
    gc.freeze()


def main(arguments: Sequence[str]) -> NoReturn:
    """Serve as a program: its arguments are descriptor, `sys.path` in JSON, host, preloads."""
    number, path, host, *preload = arguments
    descriptor = int(number)
    # The server inherits descriptors that a client library has open in the worker process.
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, os.sysconf("SC_OPEN_MAX"))
    sys.path[:] = json.loads(path)
    serve(socket.socket(fileno=descriptor), host, preload)


def read_last_words(fate: int) -> str:
    """Read the last words, which follow the exit code."""
    return os.read(fate, LAST_WORDS_BYTES).decode(errors="replace").strip()


def read_number(fate: int) -> int | None:
    """Read the number that the server sent; None when it ended without one."""
    told = os.read(fate, NUMBER.size)
    if not told:
        return None
    number: int = NUMBER.unpack(told)[0]
    return number


class _Server:
    def __init__(self, requests: socket.socket, host: str) -> None:
        self._requests = requests
        self._host = host
        self._children: dict[int, _Descriptors] = {}
        self._woken, self._wake = os.pipe()

    def run(self) -> None:
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        # Not epoll, because each child would inherit its descriptor.
        with selectors.PollSelector() as selector:
            selector.register(self._requests, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                if self._woken in ready:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._woken, 4096)
                    while self._children:
                        pid, status = os.waitpid(-1, os.WNOHANG)
                        if pid == 0:
                            break
                        fate, last_words = self._children.pop(pid)
                        _tell(fate, os.waitstatus_to_exitcode(status), _shortened(last_words))
                        os.close(fate)
                        os.close(last_words)
                if self._requests in ready and not self._serve_request():
                    return

    def _serve_request(self) -> bool:
        """Fork a child for one request; return False when the worker process is gone."""
        request, descriptors, _, _ = socket.recv_fds(self._requests, len(REQUEST), DESCRIPTORS)
        if not request:
            return False
        pipe, fate = descriptors
        last_words = -1
        try:
            last_words = _memory_file()
            pid = os.fork()
        except OSError as exc:
            _tell(fate, -(exc.errno or errno.EAGAIN))
            os.close(fate)
            if last_words >= 0:
                os.close(last_words)
        else:
            if pid == 0:
                self._become_child(pipe, fate, last_words)
            self._children[pid] = _Descriptors(fate, last_words)
            _tell(fate, pid)
        os.close(pipe)
        return True

    def _become_child(self, pipe: int, fate: int, last_words: int) -> NoReturn:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._requests.close()
            for descriptor in (self._woken, self._wake, fate, *chain(*self._children.values())):
                os.close(descriptor)
            faulthandler.enable(last_words)
            module, _, function = self._host.partition(":")
            host = getattr(importlib.import_module(module), function)
            host(socket.socket(fileno=pipe), last_words)
            code = 0
        except BaseException:  # noqa: BLE001  there is no caller left
            text = traceback.format_exc()
            os.write(last_words, text.encode(errors="backslashreplace"))
            _print(text)
        finally:
            os._exit(code)


class _Descriptors(NamedTuple):
    """The descriptors that the server keeps open for a child."""

    fate: int
    last_words: int


def _tell(fate: int, number: int, text: bytes = b"") -> None:
    # The reader may already have ended.
    with contextlib.suppress(BrokenPipeError):
        os.write(fate, NUMBER.pack(number) + text)


def _memory_file() -> int:
    """Return the descriptor of an empty file without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("pyconnect-last-words")
    import tempfile  # not on Linux, to keep its libraries out of the children

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _shortened(last_words: int) -> bytes:
    """Return the beginning and the end; one of the two names the error, depending on the writer."""
    size = os.fstat(last_words).st_size
    if size <= LAST_WORDS_BYTES:
        return os.pread(last_words, size, 0)
    half = (LAST_WORDS_BYTES - len(_LEFT_OUT)) // 2
    return os.pread(last_words, half, 0) + _LEFT_OUT + os.pread(last_words, half, size - half)


def _print(text: str) -> None:
    # Standard error may be closed; the report is then lost.
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
