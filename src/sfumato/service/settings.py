# SPDX-License-Identifier: Apache-2.0
"""Reads ``server.toml``; the ``sfumato.toml`` of one dataset will do, all else being usual."""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.config.section import Key, only, read, table, text, texts, whole
from sfumato.config.toml_file import read_toml
from sfumato.errors import InvalidConfig, shown

PORT = 8440
PROOF_HEADER = "X-Sfumato-Secret"
_LEAST_SECRET = 32
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:]+\]|[^\[\]:]+):(\d{1,5})")
_HEADER = re.compile(r"[Xx]-[A-Za-z0-9-]{1,60}")
_DURATION = re.compile(r"(\d{1,6})(ms|s)")


def _listen(value: object) -> tuple[str, int]:
    """Reads a host and a port."""
    match = _ADDRESS.fullmatch(text(value))
    if match is None or int(match[2]) > 65535:
        raise only('a host and a port: "127.0.0.1:8440"')
    return match[1].strip("[]"), int(match[2])


def _duration(value: object) -> float:
    """Reads a duration with its unit; returns seconds."""
    match = _DURATION.fullmatch(text(value))
    if match is None:
        raise only('a duration: "100ms", "2s", "0s"')
    return int(match[1]) / (1000 if match[2] == "ms" else 1)


def _count(value: object) -> int:
    """Reads a whole number of at least 1."""
    if not 1 <= whole(value) <= 100_000:
        raise only("a whole number from 1")
    return whole(value)


def _lanes(value: object) -> int:
    """Reads a number of lanes, as ``sf.Local`` takes it."""
    if not 1 <= whole(value) <= 64:
        raise only("a whole number from 1 to 64")
    return whole(value)


def _addresses(value: object) -> list[str]:
    """Reads a list of IP addresses."""
    for entry in texts(value):
        try:
            ipaddress.ip_address(entry)
        except ValueError:
            raise only('a list of IP addresses: ["10.0.0.5"]') from None
    return texts(value)


def _header(value: object) -> str:
    """Reads the name of a header that no client and no other proxy gives a meaning."""
    taken = (PROOF_HEADER.lower(), "x-forwarded-for")
    if _HEADER.fullmatch(text(value)) is None or text(value).lower() in taken:
        raise only('the name of a header of its own: "X-Remote-User"')
    return text(value)


KEYS = (
    Key("datasets", texts, '["clinic/sfumato.toml"]', "the files of the datasets"),
    Key("listen", _listen, '"127.0.0.1:8440"', "the address that listens", ("127.0.0.1", PORT)),
    Key("state", text, '"service.db"', "people, tokens and the trail; mode 0600", "service.db"),
    Key("lanes", _lanes, "2", "questions of one dataset that run at once", 2),
    Key("quantum", _duration, '"100ms"', "replies leave at multiples of it", 0.1),
    Key("drain", _duration, '"30s"', "how long questions may end after SIGTERM", 30.0),
    Key("tls", table, '{certificate = "cert.pem", key = "key.pem"}', "serve HTTPS", None),
    Key("behind_proxy", _addresses, '["10.0.0.5"]', "proxies that end TLS", ()),
    Key(
        "sign_in",
        table,
        '{header = "X-Remote-User", secret_file = "proxy.secret"}',
        "the proxies name who signed in there",
        None,
    ),
    Key("limits", table, "{waiting = 8}", "the limits of one person", {}),
)
TLS = (
    Key("certificate", text, '"cert.pem"', "the certificate, with its chain"),
    Key("key", text, '"key.pem"', "its private key"),
)
SIGN_IN = (
    Key("header", _header, '"X-Remote-User"', "the header with the person's name"),
    Key("secret_file", text, '"proxy.secret"', "the secret that the proxies send along"),
)
LIMITS = (
    Key("waiting", _count, "8", "questions that one person has under way", 8),
    Key("previews_per_minute", _count, "120", "previews of one person in a minute", 120),
)


@dataclass(frozen=True, slots=True)
class SignIn:
    """The header in which proxies name a person, and the secret that they send along."""

    header: str
    secret: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a service, as read from ``server.toml``; durations are in seconds.

    >>> Settings((Path("clinic/sfumato.toml"),), Path("service.db")).address
    'http://127.0.0.1:8440'
    """

    datasets: tuple[Path, ...]
    state: Path
    host: str = "127.0.0.1"
    port: int = PORT
    lanes: int = 2
    quantum: float = 0.1
    drain: float = 30.0
    tls: tuple[Path, Path] | None = None
    behind_proxy: tuple[str, ...] = ()
    sign_in: SignIn | None = None
    waiting: int = 8
    previews_per_minute: int = 120

    @property
    def address(self) -> str:
        """The URL of the service for people on the same machine."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


def read_settings(path: str | Path) -> Settings:
    """Reads the settings of a service; paths in the file are relative to it.

    Guarantees:
        without tls or a proxy only loopback is served

    Raises:
        InvalidConfig: no such file; a key is missing, unknown or wrong; another address than
            loopback without TLS.
    """
    form = read_toml(path, "Write a server.toml or a sfumato.toml, or name another with -c.")
    folder = Path(path).parent
    if "dataset" in form:
        return Settings((Path(path),), folder / "service.db")
    stated = read(form, "the file", KEYS)
    limits = read(stated["limits"], "limits", LIMITS)
    host, port = stated["listen"]
    settings = Settings(
        tuple(folder / name for name in stated["datasets"]),
        folder / stated["state"],
        host,
        port,
        tls=_tls(stated["tls"], folder),
        behind_proxy=tuple(stated["behind_proxy"]),
        sign_in=_sign_in(stated["sign_in"], folder),
        **limits,
        **{name: stated[name] for name in ("lanes", "quantum", "drain")},
    )
    if not settings.datasets:
        raise InvalidConfig("the file: datasets = [].", allowed="at least one file")
    if settings.sign_in and not settings.behind_proxy:
        raise InvalidConfig(
            "the file: sign_in without behind_proxy.",
            allowed="the addresses of the proxies: their headers alone count",
        )
    if not (settings.tls or settings.behind_proxy or _is_loopback(host)):
        raise InvalidConfig(
            f"the file: listen = {shown(host)} without TLS.",
            allowed="an address of loopback; or tls; or behind_proxy, if a proxy ends TLS",
        )
    return settings


def _tls(form: Mapping[str, Any] | None, folder: Path) -> tuple[Path, Path] | None:
    if form is None:
        return None
    stated = read(form, "tls", TLS)
    return folder / stated["certificate"], folder / stated["key"]


def _sign_in(form: Mapping[str, Any] | None, folder: Path) -> SignIn | None:
    if form is None:
        return None
    stated = read(form, "sign_in", SIGN_IN)
    path = folder / stated["secret_file"]
    try:
        secret = path.read_bytes().strip()
    except OSError as error:
        raise InvalidConfig(
            f"sign_in: {shown(str(path))} cannot be read ({type(error).__name__})."
        ) from None
    if len(secret) < _LEAST_SECRET or not re.fullmatch(rb"[!-~]+", secret):
        raise InvalidConfig(
            f"sign_in: {shown(str(path))} has no secret.",
            allowed=f"one line of at least {_LEAST_SECRET} printable characters without spaces",
            remedy="openssl rand -hex 32 > proxy.secret",
        )
    return SignIn(stated["header"], secret)


def _is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address; a name other than localhost may be anything."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
