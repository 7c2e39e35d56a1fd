# SPDX-License-Identifier: Apache-2.0
"""The web server of ``sfumato collect``, ``sfumato shuffle`` and ``sfumato study serve``."""

from importlib import import_module

import click

from sfumato.collector import Collector
from sfumato.errors import WrongUse
from sfumato.federated.coordinator import Coordinator

config = click.option(
    "-c",
    "--config",
    default="telemetry.toml",
    show_default=True,
    help="The file with the section [collector] or [shuffler].",
)


def serve(app: Collector | Coordinator, host: str, port: int) -> None:
    """Serves an application at an address until it is stopped.

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
        app, host=host, port=port, access_log=False, log_level="error",
        proxy_headers=False, server_header=False, lifespan="on",
    )  # fmt: skip
