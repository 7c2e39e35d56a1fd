# SPDX-License-Identifier: Apache-2.0
"""The progress of a charge with instalments, and which worker may continue it.

Proof: pieces.proof.md.

Places are numbered from 1. ``begun`` is the highest place that may have been drawn or read; each
place up to ``last`` is stored or lost. A worker stores places between the two, in increasing order.
A worker that takes over gets the next ``fence`` and continues after ``begun``.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from sfumato.errors import WrongUse
from sfumato.ledger.journal import canonical_json


@dataclass(frozen=True, slots=True)
class Pieces:
    """The progress of a charge whose answer is stored in numbered instalments (1 to ``places``).

    ``fence`` is the number of the worker that has the charge, ``begun`` the last place begun,
    ``last`` the last place stored. ``secret``: the worker has state that is not stored, so nobody
    else can resume the charge.

    Guarantees:
        a place is begun once
        a place is appended once
        what was begun and not appended is lost when another worker takes over

    >>> opened = Pieces(places=10).with_begun(3)
    >>> opened.with_appended(1).last, opened.taken_over().last
    (1, 3)
    """

    places: int
    secret: bool = False
    fence: int = 1
    begun: int = 0
    last: int = 0

    def __post_init__(self) -> None:
        if type(self.places) is not int or self.places < 1:
            raise WrongUse(
                f"places={self.places!r}.", allowed="a whole number above 0: what was paid for"
            )

    @classmethod
    def from_text(cls, text: str) -> "Pieces":
        """Parses the string that the ledger stores for the progress of a charge."""
        return cls(**json.loads(text))

    def to_text(self) -> str:
        """Returns the string that the ledger stores for the progress of a charge."""
        return canonical_json(asdict(self))

    def with_begun(self, up_to: int) -> "Pieces":
        """Returns the progress with the instalments up to number ``up_to`` marked as begun.

        Raises:
            WrongUse: place ``up_to`` was begun before, or is beyond the places that were paid for.
        """
        if type(up_to) is not int or not self.begun < up_to <= self.places:
            raise WrongUse(
                f"up_to={up_to!r}, where {self.begun} of {self.places} places were begun before.",
                allowed=f"a place from {self.begun + 1} to {self.places}",
            )
        return replace(self, begun=up_to)

    def with_appended(self, place: int) -> "Pieces":
        """Returns the progress with instalment ``place`` marked as stored; those skipped are lost.

        Raises:
            WrongUse: this worker has not begun the place, or it was appended or skipped before.
        """
        if type(place) is not int or not self.last < place <= self.begun:
            raise WrongUse(
                f"place={place!r}.",
                allowed=f"a place from {self.last + 1} to {self.begun}: begun, and behind all "
                "that were appended",
            )
        return replace(self, last=place)

    def taken_over(self) -> "Pieces":
        """Returns the progress for the next worker: instalments begun and not stored are lost."""
        return replace(self, fence=self.fence + 1, last=self.begun)


def opened_pieces(body: Mapping[str, Any]) -> str:
    """Returns the initial progress of a charge, as stored, from the journal entry that started it.

    "" for a charge with a single answer.
    """
    return Pieces(body["places"], body["secret"]).to_text() if "places" in body else ""


def gone_on(pieces: str, kind: str, body: Mapping[str, Any]) -> str:
    """Returns a charge's progress, as stored, after a journal entry that continues the charge.

    Raises:
        ValueError: no ledger would have written such an entry.
    """
    before = Pieces.from_text(pieces)
    try:
        match kind:
            case "begin":
                return before.with_begun(body["up_to"]).to_text()
            case "append":
                return before.with_appended(body["place"]).to_text()
            case "resume" if body["fence"] == before.fence + 1:
                return before.taken_over().to_text()
            case "suspend" if not before.secret:
                return pieces
    except WrongUse:
        pass
    raise ValueError(f"a step that no ledger takes: {kind}")


def fence_of(pieces: str) -> int:
    """Returns the number of a charge's worker in its stored progress; 0 for a single answer."""
    return Pieces.from_text(pieces).fence if pieces else 0
