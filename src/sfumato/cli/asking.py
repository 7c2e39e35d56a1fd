# SPDX-License-Identifier: Apache-2.0
"""The options of a command that asks: the file, the analyst and the purpose."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeAlias

import click

from sfumato.cli.options import config, seconds_to_wait, waits
from sfumato.config.load import load
from sfumato.engines.local import Local
from sfumato.ledger.waiting import WAIT
from sfumato.query.session import Session

Command: TypeAlias = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks, and the file that declares what is asked; None: what the file says."""

    config: str
    analyst: str | None = None
    purpose: str | None = None
    wait: float = WAIT

    def session(self, engine: Local | None = None) -> Session:
        """Opens a session of this asker."""
        return load(
            self.config,
            analyst=self.analyst,
            purpose=self.purpose,
            engine=engine,
            wait=self.wait,
        )


def asks(command: Command) -> Command:
    """Adds ``-c`` and who asks, what for and how long it waits; the command has ``asking``."""

    @wraps(command)
    def called(*, config: str, analyst: str | None, purpose: str | None, **others: Any) -> Any:
        asking = Asking(config, analyst, purpose, seconds_to_wait())
        return command(asking=asking, **others)

    named = click.option("--analyst", help="Who asks [default: analyst of the file, or owner].")
    meant = click.option("--purpose", help="What the question is for; its account pays.")
    return config(named(meant(waits(called))))
