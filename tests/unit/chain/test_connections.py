"""The threads of a worker that ask one chain at once keep their connections."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from chain.rpc import Rpc

_THREADS = 28
"""Sixteen planners, four ticks, eight hand-overs."""


def test_as_many_connections_as_threads_are_kept() -> None:
    together, peers = threading.Barrier(_THREADS), set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            peers.add(self.client_address)
            together.wait(30)
            body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": "0x1"}).encode()
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False
        request_queue_size = 64

    with Server(("127.0.0.1", 0), Handler) as server, ThreadPoolExecutor(_THREADS) as threads:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        rpc = Rpc(f"http://127.0.0.1:{server.server_address[1]}", timeout_seconds=60)
        for _ in range(3):
            answered = [threads.submit(rpc.call, "eth_blockNumber") for _ in range(_THREADS)]
            assert [one.result() for one in answered] == ["0x1"] * _THREADS
        rpc.close()
        server.shutdown()

    assert len(peers) == _THREADS
