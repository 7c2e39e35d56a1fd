# SPDX-License-Identifier: Apache-2.0
"""``sfumato collect``: receives reports of devices until it is stopped."""

import time
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from sfumato.cli.language import say
from sfumato.collector import Collector, Folder, Intake
from sfumato.errors import InvalidConfig, WrongUse, shown
from sfumato.telemetry import SignedTask, verified

_KEYS = {"folder", "tasks", "key", "host", "port"}
_FORM = '[collector] with folder = "reports", tasks = ["emoji.task"], key = "owner.pem"'


@click.command("collect")
@click.option(
    "-c",
    "--config",
    default="telemetry.toml",
    show_default=True,
    help="The file with the section [collector].",
)
def command(config: str) -> None:
    """Receive reports of devices over HTTP, and keep them in a folder.

    Neither the address of a device nor the time of a report is kept. Stop it with Ctrl-C: what was
    acknowledged is on disk.
    """
    declared = _read(config)
    server = _server()
    place = Path(config).parent
    tasks = [_task(place / name, place / declared["key"]) for name in declared["tasks"]]
    with Folder(place / declared["folder"]) as folder:
        app = Collector([Intake(each, folder, time.time) for each in tasks])
        host, port = declared.get("host", "127.0.0.1"), declared.get("port", 8080)
        say(f"collecting {', '.join(app.tasks)} at http://{host}:{port}")
        # no access log, and no header that names a device
        server.run(
            app, host=host, port=port, access_log=False, log_level="error", proxy_headers=False,
            server_header=False, lifespan="on",
        )  # fmt: skip
    say("stopped; everything that was acknowledged is stored")


def _server() -> Any:
    """The web server, an extra."""
    try:
        return import_module("uvicorn")
    except ImportError:
        raise WrongUse(
            "uvicorn is not installed.", remedy="pip install 'sfumato[collector]'"
        ) from None


def _read(config: str) -> dict[str, Any]:
    """The section [collector] of a file."""
    try:
        form = tomllib.loads(Path(config).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidConfig(f"{config} cannot be read ({error.strerror}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"{config} is not TOML: {error}") from None
    found = form.get("collector")
    if (
        not isinstance(found, dict)
        or found.keys() - _KEYS
        or _KEYS - {"host", "port"} - found.keys()
    ):
        raise InvalidConfig(f"{config}: no [collector], or other keys in it.", allowed=_FORM)
    is_listed = isinstance(found["tasks"], list) and all(
        isinstance(each, str) for each in (*found["tasks"], found["folder"], found["key"])
    )
    if not is_listed or not isinstance(found.get("port", 1), int):
        raise InvalidConfig(f"{config}: a wrong value in [collector].", allowed=_FORM)
    return found


def _task(path: Path, key: Path) -> SignedTask:
    """A signed task, verified as a device verifies it."""
    try:
        body = path.read_bytes()
    except OSError as error:
        raise InvalidConfig(f"{shown(path.name)} cannot be read ({error.strerror}).") from None
    return verified(body, [key])
