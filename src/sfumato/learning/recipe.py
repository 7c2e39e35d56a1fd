# SPDX-License-Identifier: Apache-2.0
"""What a recipe is: from the examples of a SELECT to what is asked of a session, and to a model."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Generic, TypeAlias, TypeVar

from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.learning.budget import Budgeted, budgeted
from sfumato.learning.described_task import DescribedTask, line_about
from sfumato.learning.examples_of import Examples
from sfumato.learning.fit_preview import Preview
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.event import Event
from sfumato.query.allowance import Allowance, allowance
from sfumato.query.cost import Cost
from sfumato.query.curator import Curator
from sfumato.query.series import Series, SeriesEvent
from sfumato.query.session import Session
from sfumato.query.task import Task

Fitted = TypeVar("Fitted")
# Called after each checkpoint with its place and the number of places.
Progress: TypeAlias = Callable[[int, int], object]
# A model of a stored answer, of what it cost and of the id of its charge.
Made: TypeAlias = Callable[[bytes, Cost, str], Fitted]


@dataclass(frozen=True, slots=True)
class Asked:
    """The keywords of a fit that state what it may cost.

    >>> Asked(epsilon=1).allowance.norm
    <Norm.L1: 'L1'>
    """

    epsilon: Number | None = None
    rho: Number | None = None
    delta: Number | None = None

    @property
    def allowance(self) -> Allowance:
        """For one release: a pure epsilon, or a rho."""
        return allowance(epsilon=self.epsilon, rho=self.rho, delta=self.delta)

    @property
    def budget(self) -> Budgeted:
        """For Gaussian releases: a rho, or a block of an epsilon with a delta."""
        return budgeted(epsilon=self.epsilon, rho=self.rho, delta=self.delta)


class Planned(ABC, Generic[Fitted]):
    """A fit that is planned, from declarations alone."""

    __slots__ = ()

    @abstractmethod
    def preview(self, session: Session) -> Preview:
        """What it would cost and how noisy it would be; free."""

    @abstractmethod
    def fitted(self, session: Session, progress: Progress | None) -> Fitted:
        """The model, once the account is charged; free if the same fit was charged before."""

    @abstractmethod
    def resumed(self, session: Session, run: str, progress: Progress | None) -> Fitted:
        """The model of a run that was begun before, which goes on; nothing is charged.

        Raises:
            UnknownName, WrongUse: there is no such run, or it is another one.
        """


# The plan at what is asked, for accounts of these orders.
Prepared: TypeAlias = Callable[[Asked, Collection[Fraction]], Planned[Fitted]]


class Recipe(ABC, Generic[Fitted]):
    """How a model is fitted to examples: ``ln.fit`` takes any of these.

    >>> from sfumato import learning as ln
    >>> isinstance(ln.Ridge(), Recipe)
    True
    """

    __slots__ = ()

    @abstractmethod
    def planned(
        self,
        examples: Examples,
        asked: Asked,
        orders: Collection[Fraction],
    ) -> Planned[Fitted]:
        """The plan of the fit. ``orders`` are those of the accounts that are charged.

        Raises:
            WrongUse, InvalidNumber: the recipe cannot be fitted to these examples at this cost.
        """

    def prepared(
        self,
        examples: Examples,
    ) -> Prepared[Fitted]:
        """``planned`` of these examples, to be called for several costs one after the other.

        What hangs on the examples alone is done once.
        """
        return partial(self.planned, examples)


@dataclass(frozen=True, slots=True)
class OneRelease(Planned[Fitted]):
    """A fit of one task: releases of ``numbers`` numbers, each with this noise in examples."""

    task: Task
    numbers: int
    noise: float
    made: Made[Fitted]
    releases: int = 1
    about: str = ""

    @property
    def event(self) -> Event:
        """What a fit does to the data."""
        return self.task.event

    @property
    def form(self) -> str:
        """A string of all that the answer depends on."""
        return f"{self.task.kind} {self.task.form}"

    @property
    def size(self) -> int | None:
        """The most bytes of the answer."""
        return self.task.size

    def ready(self, declarations: Dataset) -> None:
        """Checks what can fail without the data."""
        self.task.ready(declarations)

    def carried_out(self, curator: Curator, declarations: Dataset) -> bytes:
        """The answer, of a curator that answers the steps of the event."""
        return self.task.run(curator)

    def preview(self, session: Session) -> Preview:
        """The price of the one task."""
        return Preview(
            session.price(self.task),
            self.releases,
            1,
            self.numbers,
            self.noise,
            balances=session.balances,
        )

    def fitted(self, session: Session, progress: Progress | None) -> Fitted:
        """The model of the answer."""
        cost = session.price(self.task)
        stored = session.ask(DescribedTask(self.task, self.about))
        return self.made(stored.body, cost, stored.charge)

    def resumed(self, session: Session, run: str, progress: Progress | None) -> Fitted:
        """Refused: it has no checkpoint to go on from."""
        raise WrongUse(
            f"run={shown(run)} of a recipe that measures once.",
            remedy="Fit it: what is paid for is returned from the ledger, free.",
        )


@dataclass(frozen=True, slots=True)
class Versioned:
    """A series whose line in the ledger states what it reads, and the version of the data.

    Its key is that of the series alone, which depends on the version anyway.
    """

    series: Series
    version: str
    about: str = ""

    @property
    def kind(self) -> str:
        """The kind of the series."""
        return self.series.kind

    @property
    def line(self) -> str:
        """The line of the series, what it reads, and the version."""
        line = line_about(self.series.line, self.about)
        return f"{line}, data version {shown(self.version)}"

    @property
    def form(self) -> str:
        """The form of the series."""
        return self.series.form

    @property
    def event(self) -> SeriesEvent:
        """The event of the series."""
        return self.series.event

    def piece(self, place: int, earlier: Mapping[int, bytes]) -> Task:
        """The piece of the series."""
        return self.series.piece(place, earlier)


@dataclass(frozen=True, slots=True)
class Run(Planned[Fitted]):
    """A fit in pieces that end with a checkpoint; ``sizes`` are the releases of each piece.

    ``parts`` are items of the cost that say what a release is made of.
    """

    series: Series
    sizes: tuple[int, ...]
    numbers: int
    noise: float
    made: Made[Fitted]
    parts: tuple[dict[str, str], ...] = ()
    about: str = ""

    @property
    def event(self) -> Event:
        """What a fit does to the data."""
        return self.series.event

    @property
    def form(self) -> str:
        """A string of all that the answer depends on."""
        return f"{self.series.kind} {self.series.form}"

    @property
    def size(self) -> int | None:
        """The most bytes of the answer."""
        return self.series.piece(1, {}).size

    def ready(self, declarations: Dataset) -> None:
        """Checks what can fail without the data."""
        self.series.piece(1, {}).ready(declarations)

    def carried_out(self, curator: Curator, declarations: Dataset) -> bytes:
        """The last checkpoint, of a curator that answers the steps of the event."""
        body = b""
        for place in range(1, len(self.sizes) + 1):
            piece = self.series.piece(place, {place - 1: body} if body else {})
            piece.ready(declarations)
            body = piece.run(curator)
        return body

    def preview(self, session: Session) -> Preview:
        """The price of the whole run."""
        series = self._of(session)
        return Preview(
            self._itemised(session.price(series)),
            sum(self.sizes),
            len(self.sizes),
            self.numbers,
            self.noise,
            paid=session.paid_series(series),
            balances=session.balances,
        )

    def fitted(self, session: Session, progress: Progress | None) -> Fitted:
        """The model of the last checkpoint: of a run that is begun, resumed or recalled."""
        cost = self._itemised(session.price(self.series))
        with session.open_series(self._of(session)) as series:
            while series.left:
                series.next()
                if progress is not None:
                    progress(series.places - series.left, series.places)
            stored = dict(series.earlier)
        if not stored:
            raise WrongUse(
                "A run of which every piece was begun and none was stored.",
                remedy="It is paid for and lost: fit another recipe.",
            )
        return self.made(stored[max(stored)], cost, series.charge)

    def resumed(self, session: Session, run: str, progress: Progress | None) -> Fitted:
        """The model of this run, if the charge has paid for it."""
        session.require_paid(self._of(session), run)
        return self.fitted(session, progress)

    def _itemised(self, cost: Cost) -> Cost:
        """The cost with its parts."""
        return replace(cost, items=(*cost.items, *self.parts))

    def _of(self, session: Session) -> Versioned:
        """The series over the data of a session."""
        return Versioned(self.series, session.dataset.version, self.about)
