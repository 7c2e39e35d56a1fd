# SPDX-License-Identifier: Apache-2.0
"""The web server of ``sfumato collect`` and ``sfumato shuffle``."""

from importlib import import_module

import click

from sfumato.collector import Collector
from sfumato.config.collector import Door
from sfumato.errors import WrongUse

config = click.option(
    "-c",
    "--config",
    default="telemetry.toml",
    show_default=True,
    help="The file with the section [collector] or [shuffler].",
)


def serve(app: Collector, door: Door) -> None:
    """Serves a collector at the address of ``door`` until it is stopped.

    Raises:
        WrongUse: uvicorn, an extra, is not installed.
    """
    try:
        server = import_module("uvicorn")
    except ImportError:
        raise WrongUse(
            "uvicorn is not installed.", remedy="pip install 'sfumato[collector]'"
        ) from None
    # no access log, and no header that names a device
    server.run(
        app, host=door.host, port=door.port, access_log=False, log_level="error",
        proxy_headers=False, server_header=False, lifespan="on",
    )  # fmt: skip
