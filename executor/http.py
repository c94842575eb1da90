"""The worker's own small HTTP face: /live, /ready and /metrics, for orchestrators and Prometheus. Read only."""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from executor.errors import ConfigError
from executor.telemetry import REGISTRY


class Face:
    """Serves on `listen` ("host:port", port 0 for a free one) until `close`.

    `is_live` tells that the loops turn, `is_ready` that database and chains answered lately.

    Raises:
        ConfigError: the address cannot be bound.
    """

    def __init__(self, listen: str, is_live: Callable[[], bool], is_ready: Callable[[], bool]) -> None:
        host, _, port = listen.rpartition(":")
        try:
            self._server = ThreadingHTTPServer((host.strip("[]"), int(port)), _handler(is_live, is_ready))
        except OSError as error:
            raise ConfigError(
                f"[worker] listen: {listen} cannot be bound ({error.strerror}); choose another port or 127.0.0.1:0."
            ) from None
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, name="http", daemon=True).start()

    @property
    def address(self) -> str:
        """Where it listens, as host:port."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()


def _handler(is_live: Callable[[], bool], is_ready: Callable[[], bool]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/metrics":
                self._answer(200, CONTENT_TYPE_LATEST, generate_latest(REGISTRY))
            elif self.path in ("/live", "/ready"):
                fine = is_live() if self.path == "/live" else is_ready()
                self._answer(200 if fine else 503, "text/plain", b"ok\n" if fine else b"not ok\n")
            else:
                self._answer(404, "text/plain", b"/live /ready /metrics\n")

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Scrapes are not news."""

    return Handler
