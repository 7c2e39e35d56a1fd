# SPDX-License-Identifier: Apache-2.0
"""The options of a command that asks: the file, the analyst and the purpose."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeAlias

import click

from sfumato.cli.options import config
from sfumato.engines.local import Local
from sfumato.query.load import load
from sfumato.query.session import Session

Command: TypeAlias = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks, and the file that declares what is asked; None: what the file says."""

    config: str
    analyst: str | None = None
    purpose: str | None = None

    def session(self, engine: Local | None = None) -> Session:
        """Opens a session of this asker."""
        return load(self.config, analyst=self.analyst, purpose=self.purpose, engine=engine)


def asks(command: Command) -> Command:
    """Adds ``-c``, ``--analyst`` and ``--purpose``; the command gets them as ``asking``."""

    @wraps(command)
    def called(*, config: str, analyst: str | None, purpose: str | None, **others: Any) -> Any:
        return command(asking=Asking(config, analyst, purpose), **others)

    named = click.option("--analyst", help="Who asks [default: analyst of the file, or owner].")
    meant = click.option("--purpose", help="What the question is for; its account pays.")
    return config(named(meant(called)))
