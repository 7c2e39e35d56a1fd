# SPDX-License-Identifier: Apache-2.0
"""Reads the sections [collector] and [shuffler] of a telemetry.toml.

``sfumato collect`` and ``sfumato shuffle`` use it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.config.section import Key, only, read, text, texts, whole
from sfumato.config.toml_file import read_toml
from sfumato.errors import InvalidConfig, shown
from sfumato.metadata.server import is_postgres
from sfumato.telemetry import SignedTask, verified

_DOOR = (
    Key("folder", text, '"reports"', "where reports are kept", None),
    Key("postgres", text, '"postgresql://user@host/database"', "the same, on a server", None),
    Key("tasks", texts, '["emoji.task"]', "the signed tasks whose reports are received"),
    Key("key", text, '"owner.pem"', "the public key of who signed them"),
    Key("host", text, '"127.0.0.1"', "the address that listens", "127.0.0.1"),
    Key("port", whole, "8080", "its port", 8080),
)


def _web_address(value: Any) -> str:
    """Reads the address of a web server."""
    if not text(value).startswith(("http://", "https://")):
        raise only("an address that begins with http:// or https://")
    return text(value)


DOORS: Mapping[str, tuple[Key, ...]] = {
    "collector": _DOOR,
    "shuffler": (
        *_DOOR,
        Key("collector", _web_address, '"https://collector.example"', "where batches are sent"),
    ),
}


@dataclass(frozen=True, slots=True)
class Door:
    """The declaration of a collector or shuffler: its address, its tasks, and its store of reports.

    ``place`` is a folder or the address of a server; ``form`` has all keys of the section.
    """

    # an address may have a password
    place: str | Path = field(repr=False)
    tasks: tuple[SignedTask, ...]
    host: str
    port: int
    form: dict[str, Any] = field(repr=False)

    def __str__(self) -> str:
        return f"http://{self.host}:{self.port}"


def read_door(path: str, section: str) -> Door:
    """Returns the server that a file declares for device reports: a [collector] or a [shuffler].

    Raises:
        InvalidConfig: there is no such section, or a key is unknown, missing or has a wrong value.
    """
    form = read_toml(path, "Write a telemetry.toml, or name another with -c.")
    if section not in form:
        raise InvalidConfig(f"{path}: no [{section}].", remedy=f"[{section}]")
    found = read(form[section], section, DOORS[section])
    place = Path(path).parent
    tasks = tuple(_task(place / name, place / found["key"]) for name in found["tasks"])
    return Door(_place(path, section, found), tasks, found["host"], found["port"], found)


def _place(path: str, section: str, values: dict[str, Any]) -> str | Path:
    """The store of reports: a folder beside the file, or a server; a shuffler needs a folder."""
    folder, server = values["folder"], values["postgres"]
    if folder is not None and server is None:
        return Path(path).parent / str(folder)
    if folder is None and section == "collector" and is_postgres(server):
        return str(server)
    raise InvalidConfig(
        f"{path}: where [{section}] keeps reports.",
        allowed='folder = "reports", or in [collector] '
        'postgres = "postgresql://user@host/database", with the password in PGPASSWORD or .pgpass',
    )


def _task(path: Path, key: Path) -> SignedTask:
    """Reads a signed task and verifies it as a device does."""
    try:
        body = path.read_bytes()
    except OSError as error:
        raise InvalidConfig(f"{shown(path.name)} cannot be read ({error.strerror}).") from None
    return verified(body, [key])
