# SPDX-License-Identifier: Apache-2.0
"""The protocol of a task, and the keys under which its answer is stored.

Every kind of question implements ``Task``: SQL, marginals, synthetic data, models, synopses.
``charge.charged`` charges, runs and stores it.
"""

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
from sfumato.query.statistic import NoPlan, Plan


class Task(Protocol):
    """A question of any kind, which ``Session.ask`` charges, runs and stores.

    Everything except the result of ``run`` is fixed before the data is read.
    """

    @property
    def kind(self) -> str:
        """The name of the kind of question, for people and for the key of the answer: "sql",
        "marginals".
        """
        ...

    @property
    def line(self) -> str:
        """A line on the task for the ledger, from declarations alone; may be empty."""
        ...

    @property
    def form(self) -> str:
        """A canonical string of everything on which the answer depends, except event and asker
        (RULES 21).

        The cache key of the answer is computed from it. For a frozen dataclass,
        ``plan.show.form(self)`` returns such a string from every field that takes part in
        comparisons.
        """
        ...

    @property
    def event(self) -> Event:
        """The privacy event of a whole run; it is charged even if the run ends early."""
        ...

    @property
    def cells(self) -> Sequence[int | None]:
        """The number of noisy integers of each additive step of ``event``, in order.

        Their noise is drawn before the data is read. If a number is None or missing at the end, it
        is chosen inside the charge, and the noise is drawn then (RULES 25).
        """
        ...

    @property
    def size(self) -> int | None:
        """The largest number of bytes of the answer, from declarations alone; None if unbounded."""
        ...

    def ready(self, declarations: Dataset) -> Plan | NoPlan:
        """Returns the plan of the data that ``run`` reads; ``NO_PLAN`` if it reads none.

        Called before the charge: whatever can fail without the data should fail here, at no cost.
        """
        ...

    def run(self, curator: Curator) -> bytes:
        """Computes the answer: the bytes that are stored. Only the curator gives access to private
        data.

        The running time must depend on declarations and released values only (RULES 24).
        """
        ...


_PROMISED = ("cells", "event", "form", "kind", "line", "ready", "run", "size")


def require_task(task: object) -> None:
    """Raises WrongUse unless the argument has the members of a task."""
    require_members(task, "task", _PROMISED)


def require_members(value: object, kind: str, members: Sequence[str]) -> None:
    """Raises WrongUse unless an object has all attributes in ``members``; none of them is called."""
    missing = [name for name in members if getattr_static(value, name, members) is members]
    if missing:
        raise WrongUse(
            f"A {type(value).__name__} is no {kind}: it has no {', '.join(missing)}.",
            allowed=f"a value with {', '.join(members)}",
        )


class Named(Protocol):
    """The members of a task or series that go into the key of its answer, besides the event."""

    @property
    def kind(self) -> str: ...

    @property
    def form(self) -> str: ...


def named(task: Named) -> tuple[str, str]:
    """Returns the kind and the form of a task or series, after checks of their types.

    Raises:
        WrongUse: either is not a string, or cannot be encoded as UTF-8; or the kind is SQL.
    """
    kind = _text("kind", task.kind)
    form = _text("form", task.form)
    if kind == SQL:
        raise WrongUse(
            f"A task of kind {SQL!r}.",
            allowed="another kind: only the statements of a session are SQL",
        )
    return kind, form


def _text(name: str, value: object) -> str:
    """The argument, if it is a string that is not empty and can be encoded as UTF-8."""
    with suppress(UnicodeEncodeError):
        if type(value) is str and value.encode():
            return value
    raise WrongUse(f"{name}={shown(value)}.", allowed="a string that is not empty")


def sized(size: object) -> int | None:
    """Returns the size in bytes that a task declares for its stored answer, checked; None if it
    declares none.

    Raises:
        WrongUse: not a whole number from 0 on, or None.
    """
    if size is None or (type(size) is int and size >= 0):
        return size
    raise WrongUse(f"size={shown(size)}.", allowed="a whole number of bytes, or None")


@dataclass(frozen=True, slots=True)
class Names:
    """The cache keys under which an answer is stored.

    ``question`` is its key for this account and price, ``statement`` its key at any price, and
    ``shared`` its key for all accounts, or "" if it may not be shared. ``earlier`` are the keys
    that earlier ledger formats computed. ``released`` are the keys of its reusable parts. ``kind``
    is the kind of question, for people.
    """

    question: str
    statement: str
    shared: str = ""
    earlier: tuple[Keys, ...] = ()
    released: tuple[str, ...] = ()
    kind: str = SQL


@dataclass(frozen=True, slots=True)
class Stored:
    """The stored answer of a task: its bytes, and the id of the charge that paid for it.

    ``recalled`` is set if it was stored before this call, which then cost nothing.
    """

    body: bytes
    charge: str
    recalled: bool = False
