# SPDX-License-Identifier: Apache-2.0
"""Rows in which rules hold and public counts are exact, whatever a model was fitted to."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.metadata.dataset import Dataset
from sfumato.query.allowance import allowance
from sfumato.synthetic.drawing import Drawing
from sfumato.synthetic.estimate import Fitted
from sfumato.synthetic.fitting import Base
from sfumato.synthetic.public import PublicCells
from sfumato.synthetic.rows import Dice
from sfumato.synthetic.rules import Rule, Together
from sfumato.synthetic.schedule import Schedule
from sfumato.synthetic.schema import schema_of
from sfumato.synthetic.tree import JunctionTree
from sfumato.testing import Replay

CELLS = 4
# two components: a loop of three columns, and a pair
CLIQUES = (0, 1), (1, 2), (0, 2), (3, 4)
SHARES = Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)
COLUMNS = {f"c{place}": sf.Integer(0, CELLS - 2) for place in range(5)}
SCHEMA = schema_of(Dataset("d", {"t": sf.Table("t.csv", columns=COLUMNS)}), "t")
SCHEDULE = Schedule.of(5, allowance(rho=1))


def ruled(random):
    """Rules, and for a column of each component the public shares of values that they allow."""
    rules = []
    for clique in CLIQUES:
        allowed = random.uniform(size=(CELLS, CELLS)) < 0.5
        # as for columns without missing values
        allowed[-1], allowed[:, -1] = False, False
        # so that some row can be
        allowed[1, 1] = True
        rules.append(Rule(clique, allowed))
    publics = []
    for column, tied, near in ((0, (1, 2), rules[:3]), (4, (3,), rules[3:])):
        possible = Together(tuple(near), (CELLS,) * 5, (column,)).allowed()
        values = np.flatnonzero(possible)
        parts = SHARES[: len(values)]
        shares = [
            ((int(one),), part / sum(parts)) for one, part in zip(values, parts, strict=False)
        ]
        publics.append(PublicCells((column,), (CELLS,), tuple(shares), tied))
    return tuple(rules), tuple(publics)


def drawing(seed, extreme=3000.0):
    """A model of random potentials, so extreme that most of its cells round to nothing."""
    random = np.random.default_rng(seed)
    rules, publics = ruled(random)
    singles = tuple(np.append(np.full(CELLS - 1, 100.0), 0.0) for _ in COLUMNS)
    base = Base(SCHEMA, SCHEDULE, singles, rules, publics=publics)
    tree = JunctionTree.over(base.sizes, [*CLIQUES, (2, 3)])
    parts = list(base.fixed)
    for clique in [*CLIQUES, (2, 3)]:
        parts.append((clique, random.uniform(-extreme, extreme, (CELLS, CELLS))))
    return Drawing(base, Fitted(tree, (), tree.marginals(tree.summed(parts), 300.0), 300.0))


def faults(drawn, rows):
    """How many rows violate a rule, and by how many rows public counts are off."""
    violated = np.zeros(len(rows), bool)
    for rule in drawn.base.rules:
        violated |= ~rule.allowed[tuple(rows[:, list(rule.columns)].T)]
    off = 0
    for each in drawn.base.publics:
        have = np.bincount(rows[:, each.columns[0]], minlength=CELLS)
        off += int(np.abs(have - each.counts(len(rows))).sum())
    return int(violated.sum()), off


@given(st.integers(0, 10**6), st.sampled_from([0, 1, 50]))
def test_no_row_violates_a_rule_and_public_counts_are_exact(seed, rows):
    drawn = drawing(seed)
    assert faults(drawn, drawn.cells(rows, Dice())) == (0, 0)


@pytest.mark.parametrize("broken", ["moved alone", "model as it is"])
def test_rows_moved_alone_and_a_model_as_it_is_are_noticed(broken, monkeypatch):
    if broken == "model as it is":
        monkeypatch.setattr(Drawing, "_model", property(lambda self: self.fitted))
    found = 0
    for seed in (1, 2, 3, 4):
        drawn = drawing(seed)
        if broken == "moved alone":
            publics = tuple(replace(each, tied=()) for each in drawn.base.publics)
            drawn = replace(drawn, base=replace(drawn.base, publics=publics))
        found += sum(faults(drawn, drawn.cells(50, Dice(Replay(seed)))))
    assert found


def test_rows_follow_the_model_given_the_public_counts():
    drawn = drawing(1, extreme=1.0)
    first = drawn.base.publics[0]
    rows = drawn.cells(30_000, Dice())
    whole = drawn.fitted.marginal((0, 1))
    for (cell,), share in first.shares:
        wanted = float(share) * 30_000 * whole[cell] / whole[cell].sum()
        have = np.bincount(rows[rows[:, 0] == cell, 1], minlength=CELLS)
        # the rows of a cell are rounded once for each cell of the columns that are drawn with it
        assert np.abs(have - wanted).max() < 2 * CELLS**2
