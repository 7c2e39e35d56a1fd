# SPDX-License-Identifier: Apache-2.0
"""The address of a database server, which may hold a password and never shows it."""

from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

SERVERS = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True, repr=False)
class Server:
    """Where a server is reached; shown without user, password and options.

    >>> Server("postgresql://ada:secret@db.example:5432/clinic?sslmode=require")
    postgresql://db.example/clinic
    """

    url: str = field(repr=False)

    @property
    def place(self) -> str:
        """The database, with the port and without user, password and options.

        >>> Server("postgresql://ada:secret@db.example/clinic?sslmode=require").place
        'postgresql://db.example:5432/clinic'
        """
        try:
            parts = urlsplit(self.url)
            options = dict(parse_qsl(parts.query))
            host = parts.hostname or options.get("host", "")
            port = parts.port or options.get("port", 5432)
        except ValueError:
            return repr(self)
        return f"postgresql://{host}:{port}{parts.path}"

    def __repr__(self) -> str:
        try:
            parts = urlsplit(self.url)
            return f"postgresql://{parts.hostname or ''}{parts.path}"
        except ValueError:
            return "postgresql://"
