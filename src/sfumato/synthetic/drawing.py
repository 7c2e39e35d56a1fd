# SPDX-License-Identifier: Apache-2.0
"""Draws rows of a fitted model as cells, so that every constraint and every public count holds.

If constraints tie a public marginal to other columns, it is drawn first with its exact counts, and
the other columns are drawn given it. Otherwise a few rows are moved afterwards.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sfumato.noise import Integers
from sfumato.synthetic.estimate import Fitted
from sfumato.synthetic.fitting import Base
from sfumato.synthetic.public import PublicCells
from sfumato.synthetic.rows import Dice, Given, sampled
from sfumato.synthetic.tree import Clique

# The least mass of a cell that can occur: where rounding lost all of a row, these are left.
_LEAST = 1e-300


@dataclass(frozen=True, eq=False)
class Drawing:
    """Draws synthetic rows of a fitted model, as cell numbers; constraints and public counts hold.

    Guarantees:
        no row violates a rule, and public counts are exact
    """

    base: Base
    fitted: Fitted

    def cells(
        self,
        count: int,
        dice: Dice,
        counts: Sequence[Integers] | None = None,
        wanted: Collection[int] | None = None,
    ) -> Integers:
        """Draws the cells of ``count`` rows; a merged block is divided in proportion to the single
        columns.

        ``counts`` are the counts of each public marginal; by default the nearest to its shares. If
        only some columns are ``wanted``, the values of all others are undefined.
        """
        if wanted is not None and not self.base.publics:
            rows = sampled(self._root_at(tuple(sorted(wanted))), count, dice, wanted=wanted)
        else:
            exact = self.public_counts(count) if counts is None else counts
            rows = self._blocks(count, exact, dice)
        for place, merging in enumerate(self.base.merges):
            if wanted is not None and place not in wanted:
                continue
            weights = self.base.weights(place)
            rows[:, place] = merging.expanded(rows[:, place], weights, dice)
        return rows

    def _root_at(self, wanted: Clique) -> Fitted:
        """Returns the model on a tree rooted at a clique with all wanted columns, or with the first
        of them.
        """
        columns = wanted if self._model.tree.home(wanted) >= 0 else wanted[:1]
        return self._model.rooted(columns)

    def public_counts(
        self,
        count: int,
    ) -> list[Integers]:
        """Returns how many of ``count`` rows each cell of each public marginal must have."""
        return [each.counts(count) for each in self.base.publics]

    @cached_property
    def _model(self) -> Fitted:
        """The model with positive mass in exactly the cells that some row allowed by all rules can
        have.
        """
        fitted, merges = self.fitted, self.base.merges
        rules = [(rule.columns, rule.blocks(merges)) for rule in self.base.rules]
        if not rules:
            return fitted
        bounded = []
        possible = fitted.tree.possible(rules)
        for table, allowed in zip(fitted.marginals, possible, strict=True):
            bounded.append(np.where(allowed, np.maximum(table, _LEAST), 0.0))
        return replace(fitted, marginals=bounded)

    def _blocks(
        self,
        count: int,
        exact: Sequence[Integers],
        dice: Dice,
    ) -> Integers:
        """Draws rows in blocks. In columns with public counts, each cell is a block."""
        publics = self.base.publics
        tied = [place for place, public in enumerate(publics) if public.tied]
        if tied:
            drawn = publics[tied[0]].drawn(exact[tied[0]], dice)
            rows = self._given(drawn, dice)
        else:
            rows = sampled(self._model, count, dice)
        for place, public in enumerate(publics):
            if place not in tied[:1]:
                self._move_rows(rows, public, exact[place], dice)
        return rows

    def _given(
        self,
        given: Given,
        dice: Dice,
    ) -> Integers:
        """Draws rows in blocks, given their cells of a public marginal."""
        model = self._model.rooted(given.columns)
        return sampled(model, len(given.cells), dice, given)

    def _move_rows(
        self,
        rows: Integers,
        public: PublicCells,
        counts: Integers,
        dice: Dice,
    ) -> None:
        """Moves a few rows to other cells so that public counts are exact; tied columns are drawn
        again.
        """
        moved, given = public.enforced(rows, counts, dice)
        where = moved[:, np.newaxis]
        rows[where, list(public.columns)] = given.cells
        if public.tied and len(moved):
            tied = list(public.tied)
            rows[where, tied] = self._given(given, dice)[:, tied]
