# SPDX-License-Identifier: Apache-2.0
"""The options that say who asks: the file, the analyst and the purpose.

Every command that asks a question has them.
"""

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
    """The options of a command that say who asks: configuration file, analyst, purpose, time to
    wait.

    An analyst or purpose of None means the one in the file.
    """

    config: str
    analyst: str | None = None
    purpose: str | None = None
    wait: float = WAIT

    def session(self, engine: Local | None = None) -> Session:
        """Opens the session of this analyst and purpose, as the configuration file declares it."""
        return load(
            self.config,
            analyst=self.analyst,
            purpose=self.purpose,
            engine=engine,
            wait=self.wait,
        )


def asks(command: Command) -> Command:
    """Decorator that adds the options ``-c``, ``--analyst``, ``--purpose`` and ``--wait`` to a
    command, which receives them as the argument ``asking``, an ``Asking``.
    """

    @wraps(command)
    def called(*, config: str, analyst: str | None, purpose: str | None, **others: Any) -> Any:
        asking = Asking(config, analyst, purpose, seconds_to_wait())
        return command(asking=asking, **others)

    named = click.option("--analyst", help="Who asks [default: analyst of the file, or owner].")
    meant = click.option("--purpose", help="What the question is for; its account pays.")
    return config(named(meant(waits(called))))
