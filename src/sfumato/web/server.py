# SPDX-License-Identifier: Apache-2.0
"""Serves an open service with uvicorn until a signal; then ends in order."""

import asyncio
import gc
import signal
import socket
import sys
from asyncio import sslproto
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from typing import Any

from sfumato.errors import WrongUse
from sfumato.service.opening import Service
from sfumato.service.settings import Settings
from sfumato.web.app import App

_MOST_CONNECTIONS = 1000
# asyncio keeps a buffer of this size for each connection; its own default is 256 KiB
_TLS_BUFFER = 16 * 1024
_LARGEST_HEAD = 16 * 1024
_SWITCH_SECONDS = 0.001


def serve(service: Service, ready: Callable[[], None] = lambda: None) -> None:
    """Runs the HTTP server of a service until SIGTERM or Ctrl-C; calls ``ready`` once it listens.

    Then nothing new begins, questions have ``drain`` seconds to end, and the rest are stopped.

    Raises:
        WrongUse: uvicorn, an extra, is not installed; or the address cannot be listened on.
    """
    try:
        uvicorn = import_module("uvicorn")
    except ImportError:
        raise WrongUse(
            "uvicorn is not installed.", remedy="pip install 'sfumato[server]'"
        ) from None
    # the loop that reads requests waits this long for a thread that computes; by default 5 ms
    sys.setswitchinterval(_SWITCH_SECONDS)
    app = App(service)
    server = uvicorn.Server(uvicorn.Config(app, **_options(service.settings)))
    # uvicorn raises the signal again at its end; ours ends with 0
    server.capture_signals = nullcontext
    # what is open now stays: a collection that walks it holds up replies for 60 ms
    gc.freeze()
    try:
        with _listening(service.settings) as listener:
            asyncio.run(_run(server, listener, service, ready))
    finally:
        gc.unfreeze()
        app.close()


def _listening(settings: Settings) -> socket.socket:
    """The socket that listens; uvicorn by itself would exit the process if the address is taken."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server((settings.host, settings.port), family=family, backlog=1024)
        # head and body are two packets: the second would wait 40 ms for an acknowledgement
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        raise WrongUse(
            f"{settings.address} cannot be listened on ({error.strerror}).",
            remedy="Name another address.",
        ) from None


def _options(settings: Settings) -> dict[str, Any]:
    options: dict[str, Any] = {
        "access_log": False,
        # its own would close the handlers of this process
        "log_config": None,
        "log_level": "critical",
        "server_header": False,
        "lifespan": "off",
        # it would hide the proxy's own address, without which no header of it counts
        "proxy_headers": False,
        "limit_concurrency": _MOST_CONNECTIONS,
        "timeout_keep_alive": 30,
        "timeout_graceful_shutdown": 5,
        "http": "h11",
        "h11_max_incomplete_event_size": _LARGEST_HEAD,
        "ws": "none",
    }
    if settings.tls:
        certificate, key = settings.tls
        options |= {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)}
        sslproto.SSLProtocol.max_size = _TLS_BUFFER
    return options


async def _run(
    server: Any, listener: socket.socket, service: Service, ready: Callable[[], None]
) -> None:
    loop = asyncio.get_running_loop()
    ending = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.set)
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if server.started:
        ready()
        stop = asyncio.ensure_future(ending.wait())
        await asyncio.wait([serving, stop], return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        # who waits for an answer still gets it
        await loop.run_in_executor(None, service.jobs.drain, service.settings.drain)
        server.should_exit = True
    await serving
