# SPDX-License-Identifier: Apache-2.0
"""What was released, whatever its kind, and what a file declares to be run by name."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from sfumato.engines.stop import Stop
from sfumato.query.cost import Cost
from sfumato.query.session import Session


class Form(Enum):
    """The form of a result."""

    JSON = "json"
    ARROW = "arrow"
    ZIP = "zip"


@dataclass(frozen=True, slots=True)
class Result:
    """What was released: its bytes, and the charges that paid; ``recalled`` is None if unknown."""

    body: bytes
    charges: tuple[str, ...]
    recalled: bool | None = None
    form: Form = Form.JSON


class Run(Protocol):
    """What a file declares: its cost and errors are shown free; it is measured for a charge."""

    def preview(self, session: Session) -> tuple[Cost, str]:
        """The cost, and a text on the plan."""
        ...

    def measure(self, session: Session, stop: Stop | None) -> Result:
        """Asks it, or recalls it."""
        ...
