# SPDX-License-Identifier: Apache-2.0
"""The sections [collector] and [shuffler] of a telemetry.toml."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.config.toml_file import read_toml
from sfumato.errors import InvalidConfig, shown
from sfumato.metadata.server import is_postgres
from sfumato.telemetry import SignedTask, verified

_KEYS = {"folder", "postgres", "tasks", "key", "host", "port"}
_FORM = '[{}] with folder = "reports", tasks = ["emoji.task"], key = "owner.pem"'


@dataclass(frozen=True, slots=True)
class Door:
    """Where reports are received, of which tasks, and where they are kept."""

    # an address may have a password
    place: str | Path = field(repr=False)
    tasks: tuple[SignedTask, ...]
    host: str
    port: int
    form: dict[str, Any] = field(repr=False)

    def __str__(self) -> str:
        return f"http://{self.host}:{self.port}"


def read_door(path: str, section: str, *more: str) -> Door:
    """The section of a file; ``more`` are keys that it must have besides."""
    found = read_toml(path, "Write a telemetry.toml, or name another with -c.").get(section)
    allowed = _FORM.format(section)
    needed = {"tasks", "key", *more}
    if not isinstance(found, dict) or found.keys() - _KEYS - {*more} or needed - found.keys():
        raise InvalidConfig(f"{path}: no [{section}], or other keys in it.", allowed=allowed)
    is_listed = isinstance(found["tasks"], list) and all(
        isinstance(each, str) for each in (*found["tasks"], found["key"])
    )
    port, host = found.get("port", 8080), found.get("host", "127.0.0.1")
    if not is_listed or type(port) is not int or not isinstance(host, str):
        raise InvalidConfig(f"{path}: a wrong value in [{section}].", allowed=allowed)
    place = Path(path).parent
    tasks = tuple(_task(place / name, place / found["key"]) for name in found["tasks"])
    return Door(_place(path, section, found), tasks, host, port, found)


def _place(path: str, section: str, found: dict[str, Any]) -> str | Path:
    """Where reports are kept: a folder beside the file, or a server; a shuffler has a folder."""
    given = {"folder", "postgres"} & found.keys()
    if given == {"folder"} and isinstance(found["folder"], str):
        return Path(path).parent / found["folder"]
    if given == {"postgres"} and section == "collector" and is_postgres(found["postgres"]):
        return str(found["postgres"])
    raise InvalidConfig(
        f"{path}: where [{section}] keeps reports.",
        allowed='folder = "reports", or in [collector] '
        'postgres = "postgresql://user@host/database", with the password in PGPASSWORD or .pgpass',
    )


def _task(path: Path, key: Path) -> SignedTask:
    """A signed task, verified as a device verifies it."""
    try:
        body = path.read_bytes()
    except OSError as error:
        raise InvalidConfig(f"{shown(path.name)} cannot be read ({error.strerror}).") from None
    return verified(body, [key])
