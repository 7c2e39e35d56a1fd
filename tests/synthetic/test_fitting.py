# SPDX-License-Identifier: Apache-2.0
"""What may be chosen next, from released numbers alone."""

import itertools
from dataclasses import replace

import numpy as np

import sfumato as sf
from sfumato import synthetic as sy
from sfumato.metadata.dataset import Dataset
from sfumato.query.allowance import allowance
from sfumato.synthetic import fitting
from sfumato.synthetic.estimate import MaximumEntropy
from sfumato.synthetic.fitting import Base, Fitting, _weight_of, whole_fit, whole_fits
from sfumato.synthetic.rows import Dice
from sfumato.synthetic.schedule import ALIKE_TOGETHER, Schedule
from sfumato.synthetic.schema import schema_of
from sfumato.synthetic.select import Candidate
from sfumato.testing import Replay
from tests.synthetic.towns import session

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


def test_a_triple_is_as_heavy_as_its_heaviest_pair():
    assert _weight_of((0, 1, 2), {(0, 1): 5, (1, 2): 2}) == 5
    assert _weight_of((0, 1, 2), {(0, 1): 5, (1, 2): 0}) == 0
    assert _weight_of((0, 1), {(0, 1): 7}) == 7 and _weight_of((0, 2), {(0, 1): 7}) == 1


def test_triples_are_measured_where_the_model_does_not_grow(tmp_path):
    options = sy.Options(triples=True, rounds=6, check=0)
    with session(tmp_path) as opened:
        model = sy.fit(opened, "people", rho=20, options=options, workload={"age": 3})
        again = sy.load(opened, model.charge_id)
        other = sy.fit(opened, "people", rho=20, options=sy.Options(rounds=6, check=0))
    assert other.charge_id != model.charge_id and again.task.triples
    assert again.rows == model.rows and model.report()
    sizes = {len(pair.columns) for pair in model.released.pairs}
    assert sizes <= {2, 3} and len(model.sample(rows=50)["people"]) == 50
    assert {len(pair.columns) for pair in other.released.pairs} == {2}


def test_a_triple_is_a_candidate_of_a_clique_alone():
    whole = replace(base(), triples=True)
    begun = Fitting.begin(whole, MaximumEntropy(2))
    assert all(len(clique) == 2 for clique, _ in begun.candidates({}, Dice()))
    pairs = [measured(whole, pair) for pair in ((0, 1), (1, 2), (0, 2), (2, 3), (3, 4))]
    candidates = begun.after(pairs, MaximumEntropy(2)).candidates({}, Dice())
    assert [clique for clique, _ in candidates if len(clique) == 3] == [(0, 1, 2)]
    later = begun.after(pairs, MaximumEntropy(2))
    assert (0, 1, 2) in [clique for clique, _ in later.open(candidates, [(1, 4)])]
    nothing = later.candidates({(0, 1): 0}, Dice())
    assert [clique for clique, _ in nothing if len(clique) == 3] == []


def test_a_triple_that_is_in_no_clique_is_not_open():
    whole = replace(base(), triples=True)
    begun = Fitting.begin(whole, MaximumEntropy(2))
    pairs = [measured(whole, pair) for pair in ((0, 1), (1, 2), (2, 3), (3, 4))]
    chain = begun.after(pairs, MaximumEntropy(2))
    clique = (0, 1, 2)
    shape = [whole.sizes[each] for each in clique]
    one = Candidate(whole.counts(clique), np.zeros(int(np.prod(shape)), np.int64))
    assert chain.open([(clique, one)], []) == []
    assert chain.open([(clique, one)], [(0, 2)]) == [(clique, one)]


def test_where_little_is_spent_on_several_tables_neighbours_are_counted_together():
    """Ten values of 100 rows and a sigma of about 16: blocks of two values."""
    fine = base(rho="0.1")
    several = replace(fine.schedule, neighbours=True, alike=ALIKE_TOGETHER)
    coarse = replace(fine, schedule=several)
    least = 10 * fine.sigma[0]
    blocks = np.array(coarse.merges[0].blocks)
    assert 100 < least < 500 and 1 < coarse.sizes[0] < fine.sizes[0] == 10
    # the last cell is of missing values, which are not declared
    assert (np.diff(blocks[:-1]) >= 0).all() and blocks[-1] == blocks[0]
    assert (np.bincount(blocks[:-1]) * 100 >= least).all()


def test_a_heavy_value_at_the_end_of_a_range_is_the_end():
    """Bins of 0, 1 to 9, and 10 to 99: no value is -1 where only 0 and more are seen."""
    pay = schema_of(
        Dataset("d", {"t": sf.Table("t.csv", columns={"pay": sf.Integer(-50, 99)})}),
        "t",
        bins={"pay": [0, 1, 10]},
    )
    seen = Base(pay, Schedule.of(1, allowance(rho="1")), (np.array([0.0, 900, 800, 700, 0]),))
    assert seen.reach(0) == (0, 100)
    # a bin of several values reaches as far again
    less = replace(seen, singles=(np.array([0.0, 0, 800, 0, 0]),))
    assert less.reach(0) == (-8, 19)


def noisy_copies(count=3):
    """Copies of a fit with loops: other counts of columns and pairs, the same merges."""
    random, whole, copies = np.random.default_rng(2), base(), []
    for _ in range(count):
        singles = tuple(each + random.normal(0, 9, each.shape) for each in whole.singles)
        pairs = []
        for clique in ((0, 1), (1, 2), (2, 3), (3, 4), (0, 2), (0, 4)):
            pairs.append(whole.pair(clique, random.integers(5, 16, 100)))
        copies.append((replace(whole, singles=singles, pinned=whole.merges), pairs))
    return copies


def is_as_alone(fits, copies, estimator=None):
    """Whether copies have the marginals that they have when they are fitted alone."""
    tables = []
    for fit, (noisy, pairs) in zip(fits, copies, strict=True):
        alone = whole_fit(noisy, pairs, estimator)
        tables += zip(fit.marginals, alone.marginals, strict=True)
    return all(np.allclose(one, other, rtol=1e-7, atol=1e-7) for one, other in tables)


def test_copies_are_fitted_together_as_each_alone():
    copies = noisy_copies()
    fits = whole_fits(copies)
    assert is_as_alone(fits, copies)
    assert not is_as_alone(fits, noisy_copies(4)[1:])


def test_copies_are_fitted_by_the_estimator_that_is_given():
    copies = noisy_copies(2)
    assert is_as_alone(whole_fits(copies, MaximumEntropy(3)), copies, MaximumEntropy(3))
    assert not is_as_alone(whole_fits(copies), copies, MaximumEntropy(3))


def test_copies_that_memory_does_not_hold_together_are_fitted_alone(monkeypatch):
    def refuse(*_):
        raise MemoryError

    monkeypatch.setattr(fitting, "_fits_together", refuse)
    copies = noisy_copies(2)
    assert is_as_alone(whole_fits(copies), copies)
