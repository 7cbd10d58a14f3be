"""A TCP proxy that a test can cut: the network between two workers."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self

from pyconnect_sandbox import ports

_CHUNK = 65_536


class Proxy:
    """Listens on a port of its own and passes everything on to `target_port` until it is cut.

    Cut, it closes what is open and refuses what is new.
    """

    def __init__(self, target_port: int) -> None:
        self.port = ports.free_port()
        self._target_port = target_port
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None

    def __enter__(self) -> Self:
        self.mend()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()

    def mend(self) -> None:
        listener = socket.create_server((ports.LOOPBACK, self.port))
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def cut(self) -> None:
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
                server = socket.create_connection((ports.LOOPBACK, self._target_port))
            except OSError:
                client.close()
                continue
            with self._lock:
                self._open |= {client, server}
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
