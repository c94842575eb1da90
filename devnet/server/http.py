"""HTTP around the dispatcher, and the task that makes blocks at intervals. One event loop, one writer."""

import asyncio
import contextlib
import signal
from collections.abc import Callable

from aiohttp import web

from devnet.errors import StartError
from devnet.node import Node
from devnet.server.rpc import Dispatcher

MAX_BODY = 64 * 1024 * 1024
_HEADERS = {"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "*"}


async def serve(node: Node, host: str, port: int, listening: Callable[[int], None]) -> None:
    """Serve until SIGINT or SIGTERM. `listening` is told the port. Raises StartError where the port is taken."""
    dispatcher = Dispatcher(node)

    async def handle(request: web.BaseRequest) -> web.Response:
        if request.method == "OPTIONS":
            return web.Response(status=204, headers=_HEADERS)
        if request.method != "POST":
            return web.Response(status=405, text="POST JSON-RPC here\n", headers=_HEADERS)
        answer = dispatcher.answer(await request.read())
        if answer is None:
            return web.Response(status=204, headers=_HEADERS)
        return web.Response(body=answer, content_type="application/json", headers=_HEADERS)

    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    runner = web.ServerRunner(web.Server(handle, client_max_size=MAX_BODY), shutdown_timeout=0.2)
    await runner.setup()
    mining = asyncio.create_task(_mine_at_intervals(node))
    mining.add_done_callback(lambda _task: stopped.set())
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as problem:
            raise StartError(f"cannot listen on {host}:{port}: {problem.strerror or problem}") from None
        listening(runner.addresses[0][1])
        await stopped.wait()
        if mining.done():
            mining.result()  # a defect: say so, do not serve on without blocks
    finally:
        mining.cancel()
        await runner.cleanup()


async def _mine_at_intervals(node: Node) -> None:
    """Make a block every `interval` seconds, counted from the moment the mode was set."""
    loop = asyncio.get_running_loop()
    changed = asyncio.Event()
    node.on_mode_change = changed.set
    due = loop.time()
    while True:
        interval = node.miner.mode.interval
        if interval:
            due = max(due + interval, loop.time())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(due if interval else None):
                await changed.wait()
            changed.clear()
            due = loop.time()
            continue
        node.miner.mine()
