# SPDX-License-Identifier: Apache-2.0
"""A task of one curator as a task of several sites: each measurement is one masked share.

The task itself runs unchanged at every site, on the sums that all of them see.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, NoReturn, cast

import numpy as np

from sfumato.errors import UnsupportedSql, WrongUse
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.masks import Masks
from sfumato.mechanisms.shares import ShareMechanism
from sfumato.metadata.dataset import Dataset
from sfumato.noise import DiscreteGaussian, Integers, Noise, RoundedGaussian
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import (
    AdditiveNoise,
    Composed,
    Event,
    Repeated,
    Sampled,
    Selection,
    Thresholded,
)
from sfumato.query.cells import Cells
from sfumato.query.curator import Curator
from sfumato.query.series import Series, SeriesEvent
from sfumato.query.statistic import BoundedStatistic, NoPlan, Plan
from sfumato.query.task import Task

# What a sum over sites is not made of, and what to ask for instead.
_INSTEAD: Mapping[type, str] = {
    Thresholded: "Declare the groups: a Category, an Integer with bounds, a Boolean.",
    Selection: "Ask for COUNT, SUM, AVG or a variance; AVG of a test is a share.",
    Sampled: 'Every step reads all rows: order = "full".',
}


@dataclass(frozen=True, slots=True)
class Terms:
    """The parameters of the noise that the sites of a study share: numbers of sites and of
    colluders.

    ``least`` sites at least take part in a run, and a person is in at most ``overlap`` of them.
    ``study`` and ``roster`` are the ids of the study and of its list of sites.
    """

    study: str
    roster: str
    sites: int
    least: int
    colluders: int
    overlap: int

    @property
    def portion(self) -> Fraction:
        """The fraction of the rho at which a single curator would add as much noise as all sites
        together.
        """
        return Fraction(self.least - self.colluders, self.sites * self.overlap**2)

    def mechanism(self, noise: Noise, cells: int) -> ShareMechanism:
        """Returns the mechanism by which each site adds its share of a single curator's noise.

        Raises:
            InvalidDeclaration: a share of variance below 1.
        """
        if isinstance(noise, RoundedGaussian):
            variance = noise.sigma**2
        elif isinstance(noise, DiscreteGaussian):
            variance = noise.sigma_squared
        else:
            raise WrongUse(
                f"{type(noise).__name__} noise in a study.", allowed="Gaussian noise: state rho="
            )
        share = DiscreteGaussian(sigma_squared=variance / self.sites)
        return ShareMechanism(
            share,
            self.least,
            self.colluders,
            cells,
            self.overlap,
            self.roster,
        )

    def shared(self, event: Event, cells: int) -> Event:
        """Returns the privacy event at each site, given the event that a single curator would have.

        Raises:
            UnsupportedSql: it is not made of Gaussian noise on sums of all rows.
        """
        if isinstance(event, Composed):
            return Composed(tuple(self.shared(part, cells) for part in event.events))
        if isinstance(event, Repeated):
            return Repeated(self.shared(event.event, cells), event.times)
        if isinstance(event, AdditiveNoise) and event.distance.norm is Norm.L2:
            return self.mechanism(event.noise, cells).event(event.distance)
        kinds = [text for kind, text in _INSTEAD.items() if isinstance(event, kind)]
        raise UnsupportedSql(
            "A part of the question is no sum, so several sites cannot add it up.",
            allowed="COUNT, SUM, AVG and variances by declared groups; models with full steps",
            remedy=kinds[0] if kinds else _INSTEAD[Selection],
        )


class Exchange:
    """The connection of a site to the other sites during a run: its masks, and how sums are
    exchanged.

    ``send`` takes the number of a step and the site's masked share, and returns the sum over all
    sites.
    """

    def __init__(self, run: str = "") -> None:
        self.run = run
        self.masks: Masks | None = None
        self.send: Callable[[int, bytes], bytes] | None = None
        # the places of a series that all sites have stored alike, of those up to ``begun``
        self.agreed: frozenset[int] = frozenset()
        self.begun = 0
        self._step = 0

    def share(
        self,
        curator: Curator,
        statistic: BoundedStatistic[Any],
        mechanism: ShareMechanism,
    ) -> Integers:
        """Returns the noisy sum of a statistic over all sites, after sending this site's masked
        share.
        """
        if self.masks is None or self.send is None:
            raise WrongUse("A step of a run without masks.")
        self._step += 1
        body = self.send(self._step, curator.share(statistic, mechanism, self.masks, self._step))
        return np.frombuffer(body, "<i8").astype(np.int64)


class JointCurator:
    """The curator of a task of several sites: ``measure`` is one step of the exchange."""

    def __init__(self, curator: Curator, terms: Terms, cells: int, exchange: Exchange) -> None:
        self._curator, self._terms, self._cells, self._exchange = curator, terms, cells, exchange
        # the same bytes at every site
        self.charge = exchange.run

    def measure(
        self,
        statistic: BoundedStatistic[Any],
        mechanism: AdditiveMechanism,
        *,
        of: object = None,
    ) -> Integers | tuple[int, ...]:
        """The integers of a statistic, summed over all sites, plus the noise of all shares."""
        if of is not None:
            raise WrongUse("A sample in a study.")
        sharing = self._terms.mechanism(mechanism.noise, self._cells)
        total = self._exchange.share(self._curator, statistic, sharing)
        return tuple(total.tolist()) if isinstance(statistic, Cells) else total

    def __getattr__(self, name: str) -> NoReturn:
        raise WrongUse(f"{name} in a study.", allowed="measure")


@dataclass(frozen=True, slots=True)
class JointTask:
    """A question (``Task``) that each site computes on its own rows; only sums over sites are
    released.
    """

    inner: Task
    terms: Terms
    most: int
    exchange: Exchange = field(compare=False, default_factory=Exchange)
    kind: ClassVar[str] = "study"

    @property
    def line(self) -> str:
        """The description of the question in the ledger."""
        return f"a study: {self.inner.kind}"

    @property
    def form(self) -> str:
        """A canonical string of the question and the study, from which the answer's cache key is
        made.
        """
        return f"{self.terms.study} {self.inner.kind} {self.inner.form}"

    @property
    def event(self) -> Event:
        """The privacy event of one site: Gaussian noise shared among all sites."""
        return self.terms.shared(self.inner.event, self.most)

    @property
    def cells(self) -> tuple[int | None, ...]:
        """The number of integers in each noisy measurement of the question; None where it is not
        public.
        """
        return tuple(self.inner.cells)

    @property
    def size(self) -> int | None:
        """The largest number of bytes of the answer; None if it is not bounded."""
        return self.inner.size

    def ready(self, declarations: Dataset) -> Plan | NoPlan:
        """Returns the measurement plan of the single-curator task, computed from declarations
        alone.
        """
        return self.inner.ready(declarations)

    def run(self, curator: Curator) -> bytes:
        """Returns the inner task's answer, computed from sums over all sites."""
        joint = JointCurator(curator, self.terms, self.most, self.exchange)
        return self.inner.run(cast(Curator, joint))


@dataclass(frozen=True, slots=True)
class JointSeries:
    """A multi-step question, such as a model fit, that each site computes on its own rows.

    Only sums over all sites are released.
    """

    inner: Series
    terms: Terms
    most: int
    exchange: Exchange = field(compare=False, default_factory=Exchange)
    kind: ClassVar[str] = "study"

    @property
    def line(self) -> str:
        """The description of the question in the ledger."""
        return f"a study: {self.inner.line}"

    @property
    def form(self) -> str:
        """A canonical string of the question and the study, from which the answer's cache key is
        made.
        """
        return f"{self.terms.study} {self.inner.kind} {self.inner.form}"

    @property
    def event(self) -> SeriesEvent:
        """The privacy event of one site for all steps: Gaussian noise shared among all sites."""
        return cast(SeriesEvent, self.terms.shared(self.inner.event, self.most))

    def piece(self, place: int, earlier: Mapping[int, bytes]) -> JointTask:
        """Returns the task of step ``place``, given the stored results of earlier steps.

        Results of an earlier run count only if all sites have stored them.
        """
        exchange = self.exchange
        # what was stored in an earlier run counts only if all sites have it
        common = {
            each: body
            for each, body in earlier.items()
            if each > exchange.begun or each in exchange.agreed
        }
        inner = self.inner.piece(place, common)
        return JointTask(inner, self.terms, self.most, self.exchange)


def most_integers(task: Task) -> int:
    """Returns the number of integers in the largest single measurement of a task.

    Raises:
        UnsupportedSql: how many there are is not public.
    """
    cells = tuple(task.cells)
    sizes = [size for size in cells if size is not None]
    if not sizes or len(sizes) < len(cells):
        raise UnsupportedSql(
            "A question whose groups are not public, so several sites cannot add them up.",
            remedy=_INSTEAD[Thresholded],
        )
    return max(1, *sizes)
