# SPDX-License-Identifier: Apache-2.0
"""Rows of a fitted model, as cells: constraints hold in each one, and public counts are exact.

A public marginal that constraints tie to other columns is drawn first, with its exact counts; the
rest of each row is drawn given it. So both hold together.
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
    """The rows of a model.

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
        """The cells of so many rows; rests are divided as the single columns say.

        ``counts`` are those of each public marginal; by default the nearest to its shares. If only
        some columns are ``wanted``, the others hold nothing of use.
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
        """The model on a tree that begins with a clique of all these columns, or of the first."""
        columns = wanted if self._model.tree.home(wanted) >= 0 else wanted[:1]
        return self._model.rooted(columns)

    def public_counts(
        self,
        count: int,
    ) -> list[Integers]:
        """How many of so many rows have each cell of each public marginal."""
        return [each.counts(count) for each in self.base.publics]

    @cached_property
    def _model(self) -> Fitted:
        """The model with mass in exactly the cells that can occur in a row that all rules allow."""
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
        """The rows in blocks. A cell of a column with public counts is a block of its own."""
        publics = self.base.publics
        tied = [place for place, each in enumerate(publics) if each.tied]
        if tied:
            given = publics[tied[0]].drawn(exact[tied[0]], dice)
            rows = self._given(given, dice)
        else:
            rows = sampled(self._model, count, dice)
        for place, each in enumerate(publics):
            if place not in tied[:1]:
                self._move_rows(rows, each, exact[place], dice)
        return rows

    def _given(
        self,
        given: Given,
        dice: Dice,
    ) -> Integers:
        """Rows in blocks, given a public marginal of theirs."""
        model = self._model.rooted(given.columns)
        return sampled(model, len(given.cells), dice, given)

    def _move_rows(
        self,
        rows: Integers,
        public: PublicCells,
        counts: Integers,
        dice: Dice,
    ) -> None:
        """Moves a few rows to other cells, so that counts are exact; what is tied moves along."""
        moved, given = public.enforced(rows, counts, dice)
        where = moved[:, np.newaxis]
        rows[where, list(public.columns)] = given.cells
        if public.tied and len(moved):
            tied = list(public.tied)
            rows[where, tied] = self._given(given, dice)[:, tied]
