# SPDX-License-Identifier: Apache-2.0
"""Marginals: neighbours keep to the claimed distances, which are attained.

Every broken weight is noticed.
"""

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines import reference
from sfumato.engines.reference import Counted, Reference
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.cube import BoundedCube, Cube, axis
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Computed, PerUnit, Scan, Summary, scans
from sfumato.plan.scope import provided
from sfumato.plan.value import Value
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.unit import Relation as Neighbourhood
from sfumato.privacy.unit import Unit
from sfumato.query.pipeline import compile_cube
from sfumato.query.stability import full_weight, marginal
from tests.contracts import cubes
from tests.query.test_stability import FINE, limited, neighbours

A, B = Column("a", sf.Boolean()), Column("b", sf.Category("x", "y"))
CLIQUES = ((), ("a",), ("b",), ("a", "b"), ("b", "a"))
# every row that tells something: each cell, missing on both axes among them
CELLS = tuple({"a": a, "b": b} for a, b in product((True, False, None), ("x", "y", "?")))
THREE = Unit("who", max_rows_total=3)


def cube_of(unit: Unit | None, relation: Neighbourhood = sf.AddRemove) -> BoundedCube:
    table = sf.Table("nowhere.csv", unit=unit, columns={"a": A.type, "b": B.type})
    dataset = Dataset("data", {"t": table}, relation)
    scan = Scan("t", columns=(A, B), owner=owner_of(dataset, "t"))
    return compile_cube(Cube(scan, (axis(Value.of(A)), axis(Value.of(B)))), dataset)


def owned(rows, who="p"):
    return [{**row, "who": who} for row in rows]


def marginals(plan, content, cliques=CLIQUES):
    with Reference(content).cube(plan) as opened:
        return opened.marginals(cliques)


def totals(found) -> set[int]:
    return {int(each.sum()) for each in found}


def exceeds(plan, one, other) -> bool:
    """Whether marginals of neighbours are apart by more than is claimed, or their totals differ
    among themselves.
    """
    for first, second in zip(one, other, strict=True):
        moves = (first - second).ravel().astype(object)
        far, public = int(abs(moves).sum()), np.arange(moves.size).astype(object) * plan.refinement
        apart = [int(abs(each.ravel() - public).sum()) for each in (first, second)]
        if far > plan.l1.value or int((moves * moves).sum()) > plan.l2.value:
            return True
        if abs(apart[0] - apart[1]) > plan.apart.value:
            return True
    return len(totals(one)) > 1 or len(totals(other)) > 1


# --- every unit with up to four rows, replaced by every other -----------------------------------


@pytest.fixture(scope="module")
def units():
    """What any rows of a unit add to each marginal, beside another unit with one row more than
    count.
    """
    plan, found = cube_of(THREE), []
    rest = owned([CELLS[0]] * 3 + [CELLS[4]], "q")
    nothing = marginals(plan, {"t": rest})
    for n in range(6):
        for rows in combinations_with_replacement(CELLS[::2], n):
            with_it = marginals(plan, {"t": owned(rows) + rest})
            assert len(totals(with_it)) == 1
            found.append([one - other for one, other in zip(with_it, nothing, strict=True)])
    return [
        np.array([each[place].ravel() for each in found], dtype=np.int64)
        for place in range(len(CLIQUES))
    ]


def test_neighbours_move_no_marginal_by_more(units):
    added, replaced = cube_of(THREE), cube_of(THREE, sf.ReplaceOne)
    for moves in units:
        assert moves.min() == 0
        assert abs(moves).sum(axis=1).max() == added.l1.value == added.apart.value == 3 * FINE
        assert (moves**2).sum(axis=1).max() == added.l2.value == (3 * FINE) ** 2
        pairs = moves[:, None, :] - moves[None, :, :]
        assert abs(pairs).sum(axis=2).max() <= replaced.l1.value == replaced.apart.value == 6 * FINE
        assert (pairs**2).sum(axis=2).max() <= replaced.l2.value == 2 * (3 * FINE) ** 2
    # all rows in one cell, then all in another one
    assert abs(pairs).sum(axis=2).max() == replaced.l1.value
    assert (pairs**2).sum(axis=2).max() == replaced.l2.value


def test_a_row_that_is_its_own_unit_moves_one_cell():
    for relation, units in ((sf.AddRemove, 1), (sf.ReplaceOne, 2)):
        plan = cube_of(None, relation)
        assert [plan.l1.value, plan.l2.value, plan.apart.value] == [units] * 3
        for one, other in product(CELLS, repeat=2):
            before = [one] if relation is sf.ReplaceOne else []
            assert not exceeds(
                plan, *(marginals(plan, {"t": [CELLS[3], *rows]}) for rows in (before, [other]))
            )


def test_the_distances_are_those_worked_out_by_hand():
    for relation, far in ((sf.AddRemove, (15, 225, 15)), (sf.ReplaceOne, (30, 450, 30))):
        for norm, each in zip((Norm.L1, Norm.L2, Norm.LINF), far, strict=True):
            assert marginal(5, 3, norm, relation) == Distance(norm, Fraction(each), relation)


def test_rows_weigh_less_only_where_a_unit_may_have_several():
    scan = cube_of(THREE).cube.relation
    single = PerUnit(scan, (), (Computed(Column("n", sf.Integer(0, 9)), Summary.COUNT),))
    assert [full_weight(None, scan), full_weight("who", single), full_weight("who", scan)] == [
        1,
        1,
        FINE,
    ]


# --- random cubes over several tables -------------------------------------------------------------


@st.composite
def opened(draw):
    """A cube over up to three tables, and neighbours: all rows go that a unit owns."""
    relation = draw(st.sampled_from(Neighbourhood))
    raw = draw(cubes.cubes(depth=2)).cube
    of_rows = any(scan.table == "rows" for scan in scans(raw.relation))
    plan = compile_cube(raw, limited(draw, relation))
    return plan, draw(cubes.cliques(raw)), draw(neighbours(relation, of_rows=of_rows))


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(opened())
def test_marginals_over_several_tables_keep_to_the_distances(given):
    plan, cliques, pair = given
    assert not exceeds(
        plan, marginals(plan, pair.one, cliques), marginals(plan, pair.other, cliques)
    )


# --- mutants --------------------------------------------------------------------------------------

MANY = {"t": owned(CELLS[:7])}
# four of T = 3: 3/4 of a row each; seven of them, rounded
NONE = {"t": []}


def rounded_up(plan, held):
    return min(plan.refinement, -(-plan.refinement * plan.most // held))


def never_less(plan, held):
    return plan.refinement


def one_too_many(plan, held):
    return min(plan.refinement, plan.refinement * (plan.most + 1) // held)


@pytest.mark.parametrize("mutant", [rounded_up, never_less, one_too_many])
def test_a_wrong_weight_is_noticed(monkeypatch, mutant):
    plan = cube_of(THREE)
    assert not exceeds(plan, marginals(plan, MANY), marginals(plan, NONE))
    monkeypatch.setattr(reference, "_weight", mutant)
    assert exceeds(plan, marginals(plan, MANY), marginals(plan, NONE))


def weighed_by_cell(counted, clique):
    """T rows of a unit in each cell of this marginal: no weight that another marginal knows."""
    places = [
        tuple(row.code(counted.plan.cube.axes[each].value.expression) for each in clique)
        for row, _ in counted.weighed
    ]
    weighed = [
        (row, min(FINE, FINE * counted.plan.most // places.count(place)))
        for (row, _), place in zip(counted.weighed, places, strict=True)
    ]
    return HONEST(Counted(counted.plan, weighed), clique)


HONEST = Counted._marginal


def test_a_weight_of_one_marginal_alone_is_noticed(monkeypatch):
    plan, rows = cube_of(THREE), {"t": owned([CELLS[0], CELLS[0], CELLS[1], CELLS[2], CELLS[4]])}
    assert not exceeds(plan, marginals(plan, rows), marginals(plan, NONE))
    monkeypatch.setattr(Counted, "_marginal", weighed_by_cell)
    assert len(totals(marginals(plan, rows))) > 1
    assert exceeds(plan, marginals(plan, rows), marginals(plan, NONE))


def test_a_claim_that_is_too_small_is_noticed():
    rows = owned([CELLS[0]] * 5), owned([CELLS[4]] * 5)
    plan = cube_of(THREE, sf.ReplaceOne)
    before, after = (marginals(plan, {"t": each}) for each in rows)
    assert not exceeds(plan, before, after)
    one = cube_of(THREE)
    for name in ("l1", "l2"):
        claims = {each: getattr(plan, each) for each in ("l1", "l2", "apart")} | {
            name: getattr(one, name)
        }
        assert exceeds(
            BoundedCube(plan.cube, plan.unit, plan.most, plan.refinement, **claims), before, after
        )


def test_every_row_is_in_one_cell_of_every_marginal():
    plan = cube_of(None)
    for row in CELLS:
        for clique, found in zip(CLIQUES, marginals(plan, {"t": [row]}), strict=True):
            assert found.sum() == found.max() == 1, clique
    assert provided(plan.cube.relation) == (A, B)
