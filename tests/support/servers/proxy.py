"""A TCP proxy that a test can cut or silence: the network between two processes."""

import contextlib
import socket
import threading
from typing import Self

from pyconnect_sandbox.server import LOOPBACK, free_port

_CHUNK = 65_536


class Proxy:
    """A listener that passes all data on to `target_port` until it is cut.

    A cut proxy closes its connections and refuses new ones. A silenced proxy holds back the data of
    either side, like a network that drops packets: neither side notices, and TCP sends all later.
    """

    def __init__(self, target_port: int) -> None:
        self.port = free_port()
        self._target_port = target_port
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self._requests_pass, self._answers_pass = threading.Event(), threading.Event()
        self.restore()

    def __enter__(self) -> Self:
        self.mend()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()

    def mend(self) -> None:
        listener = socket.create_server((LOOPBACK, self.port))
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def silence(self, *, requests: bool = True, answers: bool = True) -> None:
        """Pass no data on in these directions; connections stay, and new ones are accepted."""
        for passes, silent in ((self._requests_pass, requests), (self._answers_pass, answers)):
            if silent:
                passes.clear()

    def restore(self) -> None:
        """Pass on the data that was held back, and all data from now on."""
        self._requests_pass.set()
        self._answers_pass.set()

    def cut(self) -> None:
        self.restore()
        with self._lock:
            sockets, self._open = self._open, set()
        if self._listener is not None:
            sockets.add(self._listener)
        for opened in sockets:
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
            opened.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection((LOOPBACK, self._target_port))
            except OSError:
                client.close()
                continue
            with self._lock:
                self._open |= {client, server}
            for way in (
                (client, server, self._requests_pass),
                (server, client, self._answers_pass),
            ):
                threading.Thread(target=self._pump, args=way, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, passes: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK):
                passes.wait()
                sink.sendall(data)
        # A silenced network drops the packets of the end too.
        passes.wait()
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
