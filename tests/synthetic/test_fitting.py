# SPDX-License-Identifier: Apache-2.0
"""What may be chosen next, from released numbers alone."""

import itertools
from dataclasses import replace

import numpy as np

import sfumato as sf
from sfumato.metadata.dataset import Dataset
from sfumato.query.allowance import allowance
from sfumato.synthetic.fitting import Base, Fitting
from sfumato.synthetic.rows import Dice
from sfumato.synthetic.schedule import Schedule
from sfumato.synthetic.schema import schema_of
from sfumato.testing import Replay

NAMES = [f"c{place}" for place in range(5)]


def base(rho="1", **other):
    columns = {name: sf.Integer(0, 9) for name in NAMES}
    schema = schema_of(Dataset("d", {"t": sf.Table("t.csv", columns=columns)}), "t")
    counts = tuple(np.append(np.full(10, 100.0 + place), 0.0) for place in range(5))
    return Base(schema, Schedule.of(5, allowance(rho=rho), **other), counts)


def measured(whole, clique):
    shape = [whole.sizes[each] for each in clique]
    return whole.pair(clique, np.full(int(np.prod(shape)), 10))


def offered(fitting, chosen=(), weights=None):
    candidates = fitting.candidates(weights or {}, Dice(Replay(1)))
    return {clique for clique, _ in fitting.open(candidates, chosen)}


def test_a_tree_comes_first_and_loops_later():
    whole = base()
    fitting = Fitting.begin(whole)
    pairs = set(itertools.combinations(range(5), 2))
    assert fitting.batch == 4 and offered(fitting) == pairs
    assert offered(fitting, [(0, 1), (1, 2)]) == pairs - {(0, 1), (1, 2), (0, 2)}
    tree = [(0, 1), (1, 2), (2, 3), (3, 4)]
    later = fitting.after([measured(whole, clique) for clique in tree])
    assert offered(later) == pairs - set(tree)


def test_a_forest_never_has_loops():
    whole = base(rounds=4)
    fitting = Fitting.begin(whole).after([measured(whole, (0, 1)), measured(whole, (1, 2))])
    assert whole.schedule.is_forest
    assert (0, 2) not in offered(fitting) and (2, 3) in offered(fitting)


def test_the_junction_tree_stays_below_its_limit():
    whole = base()
    tree = [(0, 1), (1, 2), (2, 3), (3, 4)]
    small = replace(whole, schedule=replace(whole.schedule, limit=2000))
    fitting = Fitting.begin(small).after([measured(small, clique) for clique in tree])
    # a triangle of 10 values each is 1,000 cells; a longer loop needs two or more
    assert offered(fitting) == {(0, 2), (1, 3), (2, 4)}


def test_a_weight_of_zero_leaves_a_pair_out():
    assert (0, 1) not in offered(Fitting.begin(base()), weights={(0, 1): 0})


def test_the_number_of_rows_is_the_weighted_mean_of_the_columns():
    # ten values, 100 to 104 each
    assert base().total == np.mean([10 * (100 + place) for place in range(5)])


def test_missing_values_that_are_neither_declared_nor_seen_have_no_block_and_no_weight():
    whole = base()
    some, none = np.append(np.full(10, 100.0), 100.0), np.append(np.full(10, 100.0), 1.0)
    whole = replace(whole, singles=(some, none, none, none, none))
    assert whole.sigma[0] < 20
    assert whole.sizes == (11, 10, 10, 10, 10)
    assert [whole.weights(place)[-1] == 0 for place in range(5)] == [False] + [True] * 4


def test_synthetic_counts_are_those_of_the_model_in_units_of_the_cube():
    whole = base()
    fitting = Fitting.begin(whole)
    found = dict(fitting.candidates({}, Dice(Replay(1))))[0, 1]
    assert found.synthetic.sum() == round(whole.total) * whole.refinement
    assert found.penalty > 0
