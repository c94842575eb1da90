"""The devnet's server: the dispatcher on its addresses, and the clock that runs beside it. One event loop, one writer."""

import asyncio
import itertools
import signal
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from weakref import WeakSet

from devnet.ledger import Origin
from devnet.node import Node
from devnet.server.http_connection import HttpConnection, Service
from devnet.server.ipc import ipc_server
from devnet.server.listener import Listener
from devnet.server.response import Responses
from devnet.server.rpc import Dispatcher
from devnet.server.session import Respond
from devnet.server.sites import Sites


def run(node: Node, listener: Listener, listening: Callable[[Sequence[str]], None]) -> None:
    """`serve` on uvloop, or on asyncio's own event loop where that is not installed (Windows)."""
    with asyncio.Runner(loop_factory=_fast_loop()) as runner:
        runner.run(serve(node, listener, listening))


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def serve(node: Node, listener: Listener, listening: Callable[[Sequence[str]], None]) -> None:
    """Serve until SIGINT or SIGTERM. `listening` is told the addresses, each as `host:port`.

    Raises StartError where port or socket are taken.
    """
    dispatcher = Dispatcher(node)
    calls: set[asyncio.Task[None]] = set()

    def respond_to(origin: Origin) -> Respond:
        return lambda body: dispatcher.respond(body, origin)

    def respond_to_newcomer() -> Respond:
        return respond_to(Origin(next(service.numbers)))

    def upgrade(origin: Origin) -> asyncio.Protocol:
        from devnet.server.websocket import websocket_protocol  # loads aiohttp, which plain HTTP does without

        return websocket_protocol(node, respond_to(origin), calls)

    service = Service(listener, Responses(listener.headers()), dispatcher.reply, upgrade, WeakSet(), itertools.count(1))
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    sites = Sites(lambda: HttpConnection(service), listener.hosts, listener.port, service.transports, stopped.set)
    dispatcher.on_restart = sites.restart
    ticking = asyncio.create_task(node.clock.run())
    ticking.add_done_callback(lambda _task: stopped.set())
    try:
        addresses = await sites.start()
        ipc_path = listener.ipc_path
        async with ipc_server(node, ipc_path, respond_to_newcomer, calls) if ipc_path else nullcontext():
            listening(addresses)
            await stopped.wait()
        if sites.failure is not None:
            raise sites.failure
        if ticking.done():
            ticking.result()  # a defect: say so, do not serve on without blocks
    finally:
        ticking.cancel()
        sites.stop()
