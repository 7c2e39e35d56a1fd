# SPDX-License-Identifier: Apache-2.0
"""The promise of a kind of question, and what its answer is stored under."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from inspect import getattr_static
from typing import Protocol

from sfumato.errors import WrongUse, shown
from sfumato.ledger.request import SQL, Keys
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.event import Event
from sfumato.query.curator import Curator
from sfumato.query.statistic import Plan


class Task(Protocol):
    """A question of any kind: what ``Session.ask`` charges, runs and stores the answer of.

    All of it but what ``run`` returns is fixed before the data is read.
    """

    @property
    def kind(self) -> str:
        """The kind of question, for people and in the key of the answer: "sql", "marginals"."""
        ...

    @property
    def line(self) -> str:
        """What the log and the report say of it, made of declarations alone; may be empty."""
        ...

    @property
    def form(self) -> str:
        """Canonical text of all that the answer depends on besides the event and the asker (RULES 21).

        ``plan.show.form(self)`` writes every field of a frozen dataclass that counts when two are compared.
        """
        ...

    @property
    def event(self) -> Event:
        """All that is done to the data; what is charged. A run may end early; nothing is given back."""
        ...

    @property
    def cells(self) -> Sequence[int | None]:
        """How many integers each additive step of ``event`` releases, in order.

        Their noise is drawn before the data is read. None, or the end of the sequence: what is
        released is chosen inside the charge, and its noise drawn then (RULES 25).
        """
        ...

    @property
    def size(self) -> int | None:
        """The most bytes of the answer, a function of declarations; None: it has no public bound."""
        ...

    def ready(self, declarations: Dataset) -> Plan:
        """The plan that ``run`` reads. What can fail without the data fails here, free."""
        ...

    def run(self, curator: Curator) -> bytes:
        """The answer, from what the curator releases. Its time follows declarations and released values (RULES 24)."""
        ...


_PROMISED = ("cells", "event", "form", "kind", "line", "ready", "run", "size")


def require_task(task: object) -> None:
    """Refuses what does not have the members of a task (WrongUse)."""
    require_members(task, "task", _PROMISED)


def require_members(value: object, kind: str, members: Sequence[str]) -> None:
    """Refuses what lacks some of these members (WrongUse); none of them is called."""
    missing = [name for name in members if getattr_static(value, name, members) is members]
    if missing:
        raise WrongUse(
            f"A {type(value).__name__} is no {kind}: it has no {', '.join(missing)}.",
            allowed=f"a value with {', '.join(members)}",
        )


class Named(Protocol):
    """What the key of an answer is made of, besides the event."""

    @property
    def kind(self) -> str: ...

    @property
    def form(self) -> str: ...


def named(task: Named) -> tuple[str, str]:
    """The kind and the form of a task, or of a series.

    Raises:
        WrongUse: one is no string, or a string that UTF-8 does not write; a task that calls itself SQL.
    """
    kind, form = _text("kind", task.kind), _text("form", task.form)
    if kind == SQL:
        raise WrongUse(
            f"A task of kind {SQL!r}.",
            allowed="another kind: only the statements of a session are SQL",
        )
    return kind, form


def _text(name: str, value: object) -> str:
    with suppress(UnicodeEncodeError):
        if type(value) is str and value.encode():
            return value
    raise WrongUse(f"{name}={shown(value)}.", allowed="a string that is not empty")


def sized(size: object) -> int | None:
    """The size that a task states (WrongUse: it is none)."""
    if size is None or (type(size) is int and size >= 0):
        return size
    raise WrongUse(f"size={shown(size)}.", allowed="a whole number of bytes, or None")


@dataclass(frozen=True, slots=True)
class Names:
    """The keys under which an answer is stored and found again.

    ``shared``: the key of the same question whoever asks; "" where it may not be shared. ``earlier``: the same
    keys as earlier formats named them. ``released``: the keys of those of its parts that may be read again.
    ``kind``: the kind of question, as the ledger says it to people.
    """

    question: str
    statement: str
    shared: str = ""
    earlier: tuple[Keys, ...] = ()
    released: tuple[str, ...] = ()
    kind: str = SQL


@dataclass(frozen=True, slots=True)
class Stored:
    """The stored answer to a task: its bytes, and the charge that paid for it. ``recalled``: it was there before."""

    body: bytes
    charge: str
    recalled: bool = False
