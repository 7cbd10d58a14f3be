"""Calls, questions and batches between this process and a Java process.

One thread reads frames; another answers questions of the Java process one after the other, because
an answer may take time. Any thread may make calls.

Exceptions of Java code become exceptions of the Python API with the same meaning:


    JavaFailure            base of all: the Java class and Java's trace
      JavaConnectError       ConnectException and its subclasses
        JavaRetriableError, JavaConfigError, JavaNotFoundError, JavaAlreadyExistsError
      JavaUnsupportedError   UnsupportedOperationException
      JavaPluginError        any other
"""

import contextlib
import itertools
import logging
import queue
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeAlias

import msgspec

from pyconnect_agent.java_processes.frames import HEAD, FrameKind, frame, from_json, json_bytes
from pyconnect_agent.java_processes.process import JavaProcess
from pyconnect_agent.java_processes.shared import SharedJavaProcess
from pyconnect_agent.process import long_lived
from pyconnect_api import (
    AlreadyExistsException,
    ConfigException,
    ConnectException,
    NotFoundException,
    RetriableException,
)


class JavaFailure(Exception):
    """An exception of Java; `java_trace`: its text as Java prints it; `java_class`: its class."""

    java_class = "java.lang.Exception"
    java_trace = ""


class JavaConnectError(JavaFailure, ConnectException):
    """A ConnectException."""


class JavaRetriableError(JavaFailure, RetriableException):
    """The call may be repeated."""


class JavaConfigError(JavaFailure, ConfigException):
    """A ConfigException."""


class JavaNotFoundError(JavaFailure, NotFoundException):
    """A NotFoundException."""


class JavaAlreadyExistsError(JavaFailure, AlreadyExistsException):
    """An AlreadyExistsException."""


class JavaUnsupportedError(JavaFailure, NotImplementedError):
    """An UnsupportedOperationException."""


class JavaPluginError(JavaFailure):
    """An exception that is not one of Kafka Connect's."""


_KINDS: Mapping[str, type[JavaFailure]] = {
    "retriable": JavaRetriableError,
    "config": JavaConfigError,
    "notFound": JavaNotFoundError,
    "alreadyExists": JavaAlreadyExistsError,
    "unsupported": JavaUnsupportedError,
    "connect": JavaConnectError,
}


def java_error(described: Mapping[str, Any]) -> JavaFailure:
    """Return the exception that a frame describes; the message may be None."""
    error = _KINDS.get(described["kind"], JavaPluginError)(described["message"] or "")
    error.java_class = described["class"]
    error.java_trace = described["trace"]
    # A logger of the error prints its notes.
    error.add_note(described["trace"])
    return error


LOG = logging.getLogger(__name__)

_LEVELS = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
CLOSE_TIMEOUT_S = 5.0
MBEANS_TIMEOUT_S = 0.5
"""Less than the worker waits for the figures of a task, which these are part of."""
STACKS_TIMEOUT_S = 0.8
"""Less than the worker waits for the stacks of a task, which these are part of."""

Answer: TypeAlias = Callable[[Mapping[str, Any]], object]
"""Answers a question of the Java process with a value of JSON; may raise any exception."""


class JavaLink:
    """The calls to a Java process, and the answers to its questions.

    `answers`: by the name of the question; a plugin may ask at any time. `batches` gets the
    payloads of batches, and None when the process has ended.
    """

    def __init__(
        self, process: JavaProcess | SharedJavaProcess, answers: Mapping[str, Answer] | None = None
    ) -> None:
        self._process = process
        self._socket = process.socket
        self._answers = {} if answers is None else answers
        self._write_lock = threading.Lock()
        self._ids = itertools.count(1)
        self._calls: dict[int, Future[Any]] = {}
        self._end: ConnectException | None = None
        self._end_lock = threading.Lock()
        self._gone = threading.Event()
        self._questions: queue.SimpleQueue[tuple[int, Any] | None] = queue.SimpleQueue()
        self._closing = False
        self._asks_for_mbeans = False
        self.transform: Callable[[bytes], bytes] = lambda _: b""
        """Transforms the records of a question (`crossing.py`); an exception fails the task."""
        self.on_end: Callable[[], object] = lambda: None
        """Called when the process has ended without `close`; it must not raise."""
        self.batches: queue.SimpleQueue[memoryview | None] = queue.SimpleQueue()
        self._reader = long_lived.Thread("java-frames", self._read)
        self._answerer = long_lived.Thread("java-questions", self._answer_all)
        self._reader.start()
        self._answerer.start()

    def begin(self, job: Mapping[str, Any]) -> Any:
        """Send the job; return the answer of the Java process. Raises as `call` does."""
        return self.answer(self.send(FrameKind.JOB, json_bytes(job)))

    def call(self, method: str, **arguments: Any) -> Any:
        """Call Java code and return its result.

        Raises the exception that Java throws, and ConnectException once the process is gone.
        """
        return self.answer(self.send(FrameKind.CALL, json_bytes({"method": method, **arguments})))

    def answer(self, call: Future[dict[str, Any]]) -> Any:
        """Wait for the answer of a call and return its value; raises as `call` does."""
        found = call.result()
        if "error" in found:
            raise java_error(found["error"])
        return found["value"]

    def tell(self, kind: FrameKind, *parts: bytes) -> None:
        """Send a frame that has no answer."""
        self._send(kind, 0, *parts)

    def send(self, kind: FrameKind, *parts: bytes) -> Future[Any]:
        """Send a frame and return the future of its answer: a map, or bytes for records."""
        call: Future[Any] = Future()
        request_id = next(self._ids)
        with self._end_lock:
            if self._end is not None:
                raise self._ended()
            self._calls[request_id] = call
        self._send(kind, request_id, *parts)
        return call

    def set_levels(self, levels: Mapping[str, str]) -> None:
        """Set the levels of Java's loggers by name; `root` is the root logger."""
        with contextlib.suppress(ConnectException):
            self.tell(FrameKind.LEVELS, json_bytes(levels))

    def stacks(self) -> str:
        """Return the stacks of Java's threads, or the reason why they are missing."""
        found: Future[str] = Future()

        def ask() -> None:
            try:
                found.set_result(str(self.answer(self.send(FrameKind.STACKS))))
            except ConnectException as ended:
                found.set_result(f"{ended}\n")

        # Sending may block too, if the process is frozen.
        long_lived.Thread("java-stacks", ask, on_death=found.set_exception).start()
        try:
            return found.result(STACKS_TIMEOUT_S)
        except TimeoutError:
            pid = self._process.pid
            return (
                f"The Java process (pid {pid}) did not answer within {STACKS_TIMEOUT_S:g} s: it is "
                f"frozen, or collects garbage. Its state: ps -o stat,wchan -p {pid}\n"
            )

    def mbeans(self) -> Sequence[Sequence[Any]]:
        """Return the numbers of the plugins' MBeans (`MBeans.java`); empty without a quick answer.

        The result is also empty while a frozen process has not answered an earlier question.
        """
        if self._asks_for_mbeans:
            return ()
        self._asks_for_mbeans = True

        def answered(_: object) -> None:
            self._asks_for_mbeans = False

        try:
            call = self.send(FrameKind.MBEANS)
            call.add_done_callback(answered)
            call.result(MBEANS_TIMEOUT_S)
            values: Sequence[Sequence[Any]] = self.answer(call)
        except (TimeoutError, ConnectException, JavaFailure):
            return ()
        return values

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self._end is not None

    def ended(self) -> ConnectException:
        """Return the reason why the process is gone; waits until it is."""
        self._gone.wait()
        return self._ended()

    def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """End the process; kill it after `timeout_s` seconds."""
        self._closing = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        if not self._process.wait(timeout_s):
            LOG.warning("the Java process did not end and is killed")
        self._process.kill()

    def stop(self) -> None:
        """Stop what runs in the process, and end it; raises as `call` does."""
        try:
            if not self.has_ended:
                self.call("stop")
        finally:
            self.close()

    def _ended(self) -> ConnectException:
        # A new exception for each caller, as traces grow where exceptions are raised.
        return ConnectException(str(self._end))

    def _send(self, kind: FrameKind, request_id: int, *parts: bytes) -> None:
        try:
            pieces = frame(kind, request_id, *parts)
            with self._write_lock:
                # One call for all pieces, as each write would wake the Java process.
                sent = self._socket.sendmsg(pieces)
                for piece in pieces:
                    if sent < len(piece):
                        self._socket.sendall(memoryview(piece)[sent:])
                    sent = max(sent - len(piece), 0)
        except OSError:
            raise self.ended() from None

    # The methods below run on the thread that reads.

    def _read(self) -> None:
        with self._socket.makefile("rb", buffering=1 << 16) as frames, contextlib.suppress(OSError):
            while head := frames.read(HEAD.size):
                length, kind, request_id = HEAD.unpack(head)
                payload = frames.read(length - HEAD.size + 4)
                self._take(FrameKind(kind), request_id, payload)
        if not self._closing and not self._process.wait(CLOSE_TIMEOUT_S):
            # Without its socket the process cannot report any result.
            self._process.kill()
        reason = "" if self._closing else self._process.explain_end()
        with self._end_lock:
            self._end = ConnectException(reason or "The Java process was ended.")
            waiting, self._calls = self._calls, {}
        self._gone.set()
        for call in waiting.values():
            call.set_exception(self._ended())
        self.batches.put(None)
        self._questions.put(None)
        if not self._closing:
            self.on_end()

    def _take(self, kind: FrameKind, request_id: int, payload: bytes) -> None:
        match kind:
            case FrameKind.BATCH:
                self.batches.put(memoryview(payload))
            case FrameKind.ANSWER | FrameKind.TRANSFORMED:
                with self._end_lock:
                    call = self._calls.pop(request_id)
                is_json = kind is FrameKind.ANSWER
                call.set_result(from_json(payload) if is_json else payload)
            case FrameKind.TRANSFORM:
                self._questions.put((request_id, payload))
            case FrameKind.LOG:
                line = from_json(payload)
                logger, level = logging.getLogger(line["logger"]), _LEVELS[line["level"]]
                if logger.isEnabledFor(level):
                    # The log shows the trace below the line, as for a trace of Python.
                    text, trace = (line["message"],), line.get("trace")
                    logger.handle(
                        logger.makeRecord(logger.name, level, "", 0, "%s", text, None, sinfo=trace)
                    )
            case _:
                self._questions.put((request_id, from_json(payload)))

    # The methods below run on the thread that answers.

    def _answer_all(self) -> None:
        while (question := self._questions.get()) is not None:
            request_id, asked = question
            if isinstance(asked, bytes):
                try:
                    records = self.transform(asked)
                except Exception as exc:
                    LOG.exception("records could not be given to Python's transformations")
                    records = msgspec.msgpack.encode(_text(exc))
                with contextlib.suppress(ConnectException):
                    self._send(FrameKind.TRANSFORMED, request_id, records)
                continue
            found: Future[Any] = Future()
            try:
                value = self._answers[asked["method"]](asked)
            except Exception as exc:  # noqa: BLE001  it is thrown there, where the question was asked
                found.set_exception(exc)
            else:
                if isinstance(value, Future):
                    found = value
                else:
                    found.set_result(value)
            if not found.done():
                found.add_done_callback(partial(self._answer, request_id))
            elif request_id:
                self._answer(request_id, found)

    def _answer(self, request_id: int, found: Future[Any]) -> None:
        error = found.exception()
        answer = (
            {"value": found.result()} if error is None else {"error": {"message": _text(error)}}
        )
        with contextlib.suppress(ConnectException):
            self._send(FrameKind.ANSWER, request_id, json_bytes(answer))


def _text(error: BaseException) -> str:
    return str(error) if isinstance(error, ConnectException) else f"{type(error).__name__}: {error}"
