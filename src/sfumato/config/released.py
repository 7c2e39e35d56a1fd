# SPDX-License-Identifier: Apache-2.0
"""What was released, whatever its kind, and what a file declares to be run by name."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from sfumato.engines.stop import Stop
from sfumato.query.cost import Cost
from sfumato.query.session import Session


class Form(Enum):
    """The file format of a released result."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"
    ZIP = "zip"


@dataclass(frozen=True, slots=True)
class Result:
    """A released result: its bytes, their format, and the ids of the charges that paid for it.

    ``recalled``: it was stored already, and cost nothing; None if unknown.
    """

    body: bytes
    charges: tuple[str, ...]
    recalled: bool | None = None
    form: Form = Form.JSON


class Run(Protocol):
    """A release that a configuration file declares (a synopsis or model, say), ready to be
    computed.
    """

    def preview(self, session: Session) -> tuple[Cost, str]:
        """Returns the privacy cost, and a text that explains the plan; costs no budget."""
        ...

    def measure(self, session: Session, stop: Stop | None) -> Result:
        """Computes the release for a charge, or returns the stored one; ``stop`` can interrupt
        it.
        """
        ...
