# SPDX-License-Identifier: Apache-2.0
"""A tick of a stream: counts and encodes the rows since the last tick. Proof: ticks.proof.md.

``synopsis`` plans streams of ``Ticks``; ``Curator.tick`` draws the noisy row of each.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from sfumato.engines.base import Names
from sfumato.errors import InvalidDeclaration
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.encoder import Encoder, most_times, root_up
from sfumato.metadata.column import Array, Text
from sfumato.noise import Integers
from sfumato.plan.rows import MISSING, BoundedRows
from sfumato.plan.show import form
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import Stream
from sfumato.privacy.unit import Relation
from sfumato.query.statistic import Opened
from sfumato.query.stream_state import Past, Row, State


@dataclass(frozen=True, slots=True)
class Ticks:
    """A stream of noisy counts of a table's rows by cell; this tick counts rows up to the time
    ``until``.

    The first value of the plan is the time of a row; the others are the axes of the cells, each
    with a cell for every code and one for missing values. A row counts in the first tick that ends
    at its time or later. It never counts if its unit has already taken part in ``participations``
    ticks, or in one of the last ``separation`` - 1, or if it has no time.

    Guarantees:
        all rows together move by at most their proved distance
        a unit is in no more ticks than stated
        no row of a stream is drawn twice

    Raises:
        InvalidDeclaration: more participations than there are ticks, or an axis that is open.
    """

    plan: BoundedRows
    encoder: Encoder
    participations: int
    separation: int
    until: int

    def __post_init__(self) -> None:
        if self.participations > most_times(self.steps, self.participations, self.separation):
            raise InvalidDeclaration("A unit in more ticks than there are.")
        if any(isinstance(value.type, Text | Array) for value in self.plan.rows.values):
            raise InvalidDeclaration("A text or an array as an axis.", allowed="declared values")
        if self.plan.unit is not None and not self.plan.naming:
            raise InvalidDeclaration("Units without names.")

    @property
    def steps(self) -> int:
        """The number of ticks."""
        return self.encoder.steps

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells along each axis."""
        sizes = []
        for value in self.plan.rows.values[1:]:
            assert not isinstance(value.type, Text), "refused"
            sizes.append(value.type.size + 1)
        return tuple(sizes)

    @property
    def cells(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    @property
    def form(self) -> str:
        """A canonical string of everything that must be the same in every tick."""
        plan = self.plan
        rows = [list(plan.rows.values), plan.unit, plan.most, plan.neighbours, plan.naming]
        return form([self.encoder, self.participations, self.separation, *rows])

    def distance(self, participations: int) -> Distance:
        """Returns the sensitivity of all rows of the stream together, for a unit that takes part in
        ``participations`` ticks.
        """
        encoder, most = self.encoder, self.plan.most
        moved = encoder.sensitivity(participations, self.separation)
        sides = 2 if self.plan.neighbours is Relation.REPLACE_ONE else 1
        if encoder.norm is Norm.L1:
            return Distance(Norm.L1, Fraction(sides * most * moved), self.plan.neighbours)
        squared = sides * most**2 * moved
        if encoder.slack:
            touched = min(self.cells, sides * most * participations)
            squared = (root_up(squared) + root_up(encoder.slack * touched)) ** 2
        return Distance(Norm.L2, Fraction(squared), self.plan.neighbours)

    def event(self, mechanism: AdditiveMechanism) -> Stream:
        """Returns the privacy event of all ticks together."""
        noise = mechanism.event(self.distance(self.participations))
        column = self.distance(1).value
        return Stream(noise, self.steps, column, self.participations, self.separation)

    def drawn(
        self,
        opened: Opened,
        past: Past,
        mechanism: AdditiveMechanism,
        noise: Integers | None,
    ) -> dict[int, Row]:
        """Returns the noisy row of counts of this tick, by its place in the stream.

        If there are drawn rows that are not stored, these are returned and nothing is drawn; so too
        if the tick ends no later than the last one. For the rows of the plan begin after the last
        stored tick, and which ``most`` rows of a unit are kept could differ. Only the curator calls
        this.
        """
        fresh = State.fresh(self.form, self.encoder.begin(self.cells))
        with past.moving(fresh) as state:
            shown = {place: row for place, row in state.shown.items() if place > past.stored}
            is_later = state.until is None or self.until > state.until
            if is_later and not shown:
                state, exact = self._moved(state, opened)
                added = mechanism.release(exact, None if noise is None else noise.tolist())
                shown[past.place] = (self.until, added)
            past.save(replace(state, place=past.place, shown=shown))
        return shown

    def _moved(
        self,
        state: State,
        opened: Opened,
    ) -> tuple[State, list[int]]:
        """The state after this tick, and its exact row."""
        rows = opened.unit_rows(self.plan)
        time = rows.codes[:, 0]
        isnt_over = (time != MISSING) & (time <= self.until)
        if state.until is not None:
            isnt_over &= time > state.until
        tick = state.tick + 1
        if not self._is_limited:
            takes_part = isnt_over
        else:
            owners = np.repeat(np.arange(rows.units), np.diff(rows.starts))
            present = np.unique(owners[isnt_over])
            assert rows.names is not None, "the plan names units"
            allowed, state = self._taking_part(state, rows.names[present], tick)
            chosen = np.zeros(rows.units, bool)
            chosen[present[allowed]] = True
            takes_part = isnt_over & chosen[owners]
        counts = self._counts(rows.codes[takes_part, 1:])
        memory, exact = self.encoder.row(tick, state.memory, counts)
        return replace(state, tick=tick, until=self.until, memory=memory), exact

    @property
    def _is_limited(self) -> bool:
        """Whether a unit could be in more ticks than ``participations`` and ``separation`` allow."""
        always = self.separation == 1 and self.participations == self.steps
        return self.plan.unit is not None and not always

    def _taking_part(
        self,
        state: State,
        names: Names,
        tick: int,
    ) -> tuple["np.ndarray[tuple[int], np.dtype[np.bool_]]", State]:
        """A mask of the units that may take part in a tick, and the state after they have."""
        every = np.union1d(state.names, names)
        uses, last = (np.zeros(len(every), np.int64) for _ in range(2))
        known = np.searchsorted(every, state.names)
        uses[known], last[known] = state.uses, state.last
        places = np.searchsorted(every, names)
        is_apart = (uses == 0) | (tick - last >= self.separation)
        allowed = ((uses < self.participations) & is_apart)[places]
        uses[places[allowed]] += 1
        last[places[allowed]] = tick
        return allowed, replace(state, names=every, uses=uses, last=last)

    def _counts(self, codes: Integers) -> Integers:
        """The number of rows in each cell."""
        index = np.zeros(len(codes), np.int64)
        for axis, (value, size) in enumerate(
            zip(self.plan.rows.values[1:], self.shape, strict=True)
        ):
            assert not isinstance(value.type, Text), "refused"
            own = codes[:, axis]
            place = np.where(own == MISSING, size - 1, own - value.type.lower_code)
            index = index * size + np.clip(place, 0, size - 1)
        return np.bincount(index, minlength=self.cells).astype(np.int64)
