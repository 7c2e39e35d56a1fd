# SPDX-License-Identifier: Apache-2.0
"""A run as one site sees it: a pure state machine, without clock or socket.

Messages may come in any order, twice, late or never. A site holds the question once all have
approved, and executes it once all have held it; whatever ends a run before that leaves it at no
cost. Once all have held it, no clock and no cancellation ends it: all sites hear the messages in
one order, so either all execute or none does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from sfumato.federated.messages import Body, Message

# The kinds of messages that end a run.
ENDINGS = ("refused", "withdrawn", "failed", "cancelled", "answered")


class Phase(Enum):
    """The state of one site in a run (one attempt to answer a question) of a study."""

    PROPOSED = "waiting for its owner"
    APPROVED = "approved here"
    HELD = "held: its cost is reserved"
    RUNNING = "executing"
    ENDED = "ended"


class Act(Enum):
    """The next action that a site must take in a run of a study."""

    WAIT = "wait"
    APPROVE = "approve"
    HOLD = "hold"
    EXECUTE = "execute"
    VOID = "void"
    WITHDRAW = "withdraw"


@dataclass(frozen=True, slots=True)
class Round:
    """The state of a run (an attempt to answer a question) at one site of a study: a state machine.

    ``sites`` take part; the run ends at the time ``until`` if not all of them have reserved the
    question's cost by then.

    Guarantees:
        a site executes only what all sites have held
        a run is executed once
        a run that has ended is never executed
    """

    run: str
    site: str
    sites: frozenset[str]
    until: float
    phase: Phase = Phase.PROPOSED
    approved: frozenset[str] = frozenset()
    ready: Mapping[str, Body] = field(default_factory=dict)
    endings: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_held(self) -> bool:
        """Whether all sites have reserved the question's cost in their ledgers."""
        return self.sites <= set(self.ready)

    def after(self, message: Message) -> "Round":
        """Returns the state after a message; messages of other runs or non-participants change
        nothing.
        """
        author, kind = message.author, message.kind
        if message.run != self.run or (author not in self.sites and kind != "cancelled"):
            return self
        if kind == "approved":
            return replace(self, approved=self.approved | {author})
        if kind == "ready" and author not in self.ready and not self.endings:
            # the first key of a site is its key
            return replace(self, ready={**self.ready, author: message.body})
        if kind == "cancelled" and self.is_held:
            return self
        if kind in ENDINGS and author not in self.endings:
            return replace(self, endings={**self.endings, author: kind})
        return self

    def next(self, now: float, *, permitted: bool) -> tuple["Round", Act]:
        """Returns the new state and the site's next action at time ``now``.

        ``permitted``: this site's owner approves of the question.
        """
        if self.phase in (Phase.RUNNING, Phase.ENDED):
            return self, Act.WAIT
        if self.endings:
            return replace(self, phase=Phase.ENDED), Act.VOID
        if self.phase is Phase.HELD and self.is_held:
            return replace(self, phase=Phase.RUNNING), Act.EXECUTE
        if now >= self.until:
            return replace(self, phase=Phase.ENDED), Act.WITHDRAW
        if self.phase is Phase.PROPOSED and permitted:
            return replace(self, phase=Phase.APPROVED), Act.APPROVE
        if self.phase is Phase.APPROVED and self.approved >= self.sites:
            return replace(self, phase=Phase.HELD), Act.HOLD
        return self, Act.WAIT

    def postponed(self) -> "Round":
        """Returns the state after this site could not reserve the cost: another run of the question
        goes on.

        It ends in an answer, which this run sends, or frees the question, which this run holds.
        """
        return replace(self, phase=Phase.APPROVED)

    def ended(self) -> "Round":
        """Returns the state in which this site has finished the run."""
        return replace(self, phase=Phase.ENDED)


def agreed_places(ready: Mapping[str, Body]) -> tuple[frozenset[int], int]:
    """Returns the steps whose stored results are equal at all sites, and the last step begun at
    any.

    >>> first = {"begun": 2, "stored": {"1": "aa", "2": "bb"}}
    >>> agreed_places({"a": first, "b": {"begun": 3, "stored": {"1": "aa", "2": "xx"}}})
    (frozenset({1}), 3)
    """
    stored = [set(dict(_mapping(body.get("stored"))).items()) for body in ready.values()]
    common = set.intersection(*stored) if stored else set()
    begun = max((_whole(body.get("begun")) for body in ready.values()), default=0)
    return frozenset(int(place) for place, _ in common), begun


def _mapping(value: object) -> Mapping[str, str]:
    return value if isinstance(value, Mapping) else {}


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
