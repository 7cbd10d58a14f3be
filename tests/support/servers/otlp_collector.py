"""A collector of spans: OTLP over HTTP, decoded by OpenTelemetry's own messages."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Collector:
    """The received `spans`: name, trace id, parent's span id, attributes, nanoseconds, failed."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.spans: list[dict[str, Any]] = []
        self.paths: set[str] = set()

    def take(self, path: str, body: bytes) -> None:
        """Decode a request and keep its spans."""
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )

        self.paths.add(path)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.spans.append(
                        {
                            "name": span.name,
                            "trace": span.trace_id.hex(),
                            "parent": span.parent_span_id.hex(),
                            "ns": span.end_time_unix_nano - span.start_time_unix_nano,
                            "failed": span.status.code == 2,
                            **{
                                each.key: each.value.string_value or each.value.int_value
                                for each in (*resource.resource.attributes, *span.attributes)
                            },
                        }
                    )


@contextmanager
def otlp_collector() -> Iterator[Collector]:
    """Yield a collector that listens."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.take(self.path, self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Drop the message."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(f"http://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield collector
        server.shutdown()
