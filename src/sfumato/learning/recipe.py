# SPDX-License-Identifier: Apache-2.0
"""The interfaces of every recipe and of a planned fit, and the two ways to carry a fit out.

A ``Recipe`` plans a fit for some examples and a cost. The plan is a ``OneRelease`` (one task) or a
``Run`` (a series of pieces with checkpoints); a session carries it out and the model is built from
the released bytes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Generic, TypeAlias, TypeVar

from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.learning.bag import Bag
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
    """The privacy cost that the caller of ``fit`` states: an epsilon, a rho, or an epsilon with a
    delta.

    >>> Asked(epsilon=1).allowance.norm
    <Norm.L1: 'L1'>
    """

    epsilon: Number | None = None
    rho: Number | None = None
    delta: Number | None = None

    @property
    def allowance(self) -> Allowance:
        """The stated cost as the limit of a task that is one release: a pure epsilon, or a rho."""
        return allowance(epsilon=self.epsilon, rho=self.rho, delta=self.delta)

    @property
    def budget(self) -> Budgeted:
        """The stated cost as the limit of a run with Gaussian noise: a rho, or an epsilon with a
        delta.
        """
        return budgeted(epsilon=self.epsilon, rho=self.rho, delta=self.delta)


class Planned(ABC, Generic[Fitted]):
    """The interface of a planned fit: what it releases and costs, derived from declarations only
    and not yet charged.
    """

    __slots__ = ()

    @abstractmethod
    def preview(self, session: Session) -> Preview:
        """Returns what the fit would cost and how noisy it would be; this costs no budget."""

    @abstractmethod
    def fitted(self, session: Session, progress: Progress | None) -> Fitted:
        """Charges the account and returns the fitted model; a fit that was charged before costs
        nothing.
        """

    @abstractmethod
    def resumed(self, session: Session, run: str, progress: Progress | None) -> Fitted:
        """Continues a run that was begun before and returns its model; nothing is charged.

        Raises:
            UnknownName, WrongUse: there is no such run, or it is another one.
        """


# The plan at what is asked, for accounts of these orders.
Prepared: TypeAlias = Callable[[Asked, Collection[Fraction]], Planned[Fitted]]


class Recipe(ABC, Generic[Fitted]):
    """The interface of a learning method with its settings, which plans a fit; ``ln.fit`` takes
    any.

    >>> from sfumato import learning as ln
    >>> isinstance(ln.Ridge(), Recipe)
    True
    """

    __slots__ = ()

    @property
    def bag(self) -> Bag | None:
        """How texts are read; None for a recipe that reads none."""
        return None

    @abstractmethod
    def planned(
        self,
        examples: Examples,
        asked: Asked,
        orders: Collection[Fraction],
    ) -> Planned[Fitted]:
        """Returns the planned fit of this recipe to these examples at the stated cost. ``orders``
        are the Renyi orders of the accounts to charge.

        Raises:
            WrongUse, InvalidNumber: the recipe cannot be fitted to these examples at this cost.
        """

    def prepared(
        self,
        examples: Examples,
    ) -> Prepared[Fitted]:
        """Returns a function that plans the fit of these examples for different costs.

        Work that depends on the examples only is done once.
        """
        return partial(self.planned, examples)


@dataclass(frozen=True, slots=True)
class OneRelease(Planned[Fitted]):
    """The planned fit of a model in a single task, without checkpoints; it has ``releases``
    releases of ``numbers`` noisy numbers.

    ``noise`` is the standard deviation of each number, in examples; ``made`` builds the model from
    the answer.
    """

    task: Task
    numbers: int
    noise: float
    made: Made[Fitted]
    releases: int = 1
    about: str = ""

    @property
    def event(self) -> Event:
        """The privacy event that the fit is charged for."""
        return self.task.event

    @property
    def form(self) -> str:
        """A canonical string of everything that the answer depends on, from which its cache key is
        computed.
        """
        return f"{self.task.kind} {self.task.form}"

    @property
    def size(self) -> int | None:
        """The largest size of the stored answer, in bytes."""
        return self.task.size

    def ready(self, declarations: Dataset) -> None:
        """Checks, before anything is charged, everything about the fit that can fail without
        reading data.
        """
        self.task.ready(declarations)

    def carried_out(self, curator: Curator, declarations: Dataset) -> bytes:
        """Runs the fit inside another task's charge (``tune``) and returns its answer as bytes."""
        return self.task.run(curator)

    def preview(self, session: Session) -> Preview:
        """Returns the cost and the noise of the fit; nothing is charged."""
        return Preview(
            session.price(self.task),
            self.releases,
            1,
            self.numbers,
            self.noise,
            balances=session.balances,
        )

    def fitted(self, session: Session, progress: Progress | None) -> Fitted:
        """Charges the account for the fit, runs it, and returns the fitted model."""
        cost = session.price(self.task)
        stored = session.ask(DescribedTask(self.task, self.about))
        return self.made(stored.body, cost, stored.charge)

    def resumed(self, session: Session, run: str, progress: Progress | None) -> Fitted:
        """Raises WrongUse: a fit that is a single task has no checkpoint to resume from."""
        raise WrongUse(
            f"run={shown(run)} of a recipe that measures once.",
            remedy="Fit it: what is paid for is returned from the ledger, free.",
        )


@dataclass(frozen=True, slots=True)
class Versioned:
    """A series whose ledger line also states what it reads, and the version of the data.

    Its key is that of the wrapped series, which depends on the version anyway.
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
        """The line of the series, what it reads, and the version of the data."""
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
        """The piece of the series at this place."""
        return self.series.piece(place, earlier)


@dataclass(frozen=True, slots=True)
class Run(Planned[Fitted]):
    """The planned fit of a model in several parts, each of which ends with a checkpoint in the
    ledger.

    ``sizes`` are the numbers of releases of each piece. ``parts`` are items of the cost report that
    describe what a release consists of.
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
        """The privacy event that the whole run is charged for."""
        return self.series.event

    @property
    def form(self) -> str:
        """A canonical string of everything that the answer depends on, from which its cache key is
        computed.
        """
        return f"{self.series.kind} {self.series.form}"

    @property
    def size(self) -> int | None:
        """The largest size of a stored checkpoint, in bytes."""
        return self.series.piece(1, {}).size

    def ready(self, declarations: Dataset) -> None:
        """Checks, before anything is charged, everything about the run that can fail without
        reading data.
        """
        self.series.piece(1, {}).ready(declarations)

    def carried_out(self, curator: Curator, declarations: Dataset) -> bytes:
        """Runs the fit inside another task's charge (``tune``) and returns its last checkpoint as
        bytes.
        """
        body = b""
        for place in range(1, len(self.sizes) + 1):
            piece = self.series.piece(place, {place - 1: body} if body else {})
            piece.ready(declarations)
            body = piece.run(curator)
        return body

    def preview(self, session: Session) -> Preview:
        """Returns the cost and the noise of the whole run; nothing is charged."""
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
        """Begins the run and charges it, or continues one that was charged before; returns the
        model of its last checkpoint.
        """
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
        """Continues the run that the charge ``run`` paid for and returns its model; raises an error
        if that charge paid for another run.
        """
        session.require_paid(self._of(session), run)
        return self.fitted(session, progress)

    def _itemised(self, cost: Cost) -> Cost:
        """Returns the cost with the items of ``parts`` added."""
        return replace(cost, items=(*cost.items, *self.parts))

    def _of(self, session: Session) -> Versioned:
        """Returns the series over the data of a session."""
        return Versioned(self.series, session.dataset.version, self.about)
