"""The addresses the devnet listens on, and being away from them for a while."""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from devnet.errors import StartError
from devnet.node import Restart

BACKLOG = 1024  # connections that may wait to be taken


class Sites:
    """Listening sockets. `protocol` makes one for each connection, `transports` are those open.

    `on_failure` is called where a restart cannot listen again; `failure` says why.
    """

    def __init__(
        self,
        protocol: Callable[[], asyncio.Protocol],
        hosts: Sequence[str],
        port: int,
        transports: Iterable[asyncio.Transport],
        on_failure: Callable[[], None],
    ) -> None:
        self._protocol = protocol
        self._hosts = hosts
        self._port = port
        self._transports = transports
        self._on_failure = on_failure
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.failure: StartError | None = None

    async def start(self) -> list[str]:
        """Listen; the addresses, each as `host:port`. Raises StartError where one is taken."""
        loop = asyncio.get_running_loop()
        for host in self._hosts:
            try:
                server = await loop.create_server(self._protocol, host, self._port, backlog=BACKLOG)
            except OSError as problem:
                text = f"cannot listen on {host}:{self._port}: {problem.strerror or problem}"
                raise StartError(text) from None
            self._servers.append(server)
            if not self._port:
                self._port = server.sockets[0].getsockname()[1]
        return [_address(*each.getsockname()[:2]) for server in self._servers for each in server.sockets]

    def stop(self) -> None:
        """Listen no more, and break off what is open."""
        self._close()
        self._drop()

    def restart(self, order: Restart) -> None:
        """Be away as ordered, beginning now, and listen on the same port again. What is written goes out before."""
        self._close()
        task = asyncio.get_running_loop().create_task(self._restart(order))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _restart(self, order: Restart) -> None:
        if order.drop_connections:
            self._drop()
        if order.downtime:
            await asyncio.sleep(order.downtime)
        try:
            await self.start()
        except StartError as problem:
            self.failure = problem
            self._on_failure()

    def _close(self) -> None:
        for server in self._servers:
            server.close()
        self._servers.clear()

    def _drop(self) -> None:
        for transport in list(self._transports):
            transport.abort()


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
