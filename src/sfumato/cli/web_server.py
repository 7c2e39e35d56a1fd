# SPDX-License-Identifier: Apache-2.0
"""The web server of ``sfumato collect``, ``sfumato shuffle`` and ``sfumato study serve``."""

from importlib import import_module
from typing import Any

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


def require_server() -> Any:
    """Returns the module of the web server. A command calls it before it opens or says anything.

    Raises:
        WrongUse: uvicorn, an extra, is not installed.
    """
    try:
        return import_module("uvicorn")
    except ImportError:
        raise WrongUse(
            "uvicorn is not installed.", remedy="pip install 'sfumato[collector]'"
        ) from None


def serve(app: Collector | Coordinator, host: str, port: int) -> None:
    """Serves an application at an address until it is stopped.

    Raises:
        WrongUse: uvicorn, an extra, is not installed.
    """
    # no access log, and no header that names a device
    require_server().run(
        app, host=host, port=port, access_log=False, log_level="error",
        proxy_headers=False, server_header=False, lifespan="on",
    )  # fmt: skip
