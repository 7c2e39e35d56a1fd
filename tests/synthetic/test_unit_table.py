# SPDX-License-Identifier: Apache-2.0
"""Several tables of one unit against their proved distances, on all neighbours of tiny clinics."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import sfumato as sf
from sfumato.engines.reference import Reference
from sfumato.metadata.column import Category, Column
from sfumato.metadata.dataset import Dataset
from sfumato.query.statistic import Opened
from sfumato.synthetic import unit_table
from sfumato.synthetic.relational import family_of, rows_of
from sfumato.synthetic.schema import TextAxis
from sfumato.synthetic.unit_table import FULL, UnitTable
from tests.synthetic.clinics import VISITS, Tables, all_of, counted, plan, tiny, together

OTHER = {
    "patients": [{"id": "b", "s": 1}],
    "visits": [{"id": "b", "d": 0, "w": 0}, {"id": "b", "d": 1, "w": 0}],
}


def cliques(table: UnitTable) -> list[tuple[str, ...]]:
    """The empty clique, all single columns, and all pairs."""
    names = [one.name for one in table.family.widened(table.table)]
    sizes = (itertools.combinations(names, size) for size in (0, 1, 2))
    return list(itertools.chain.from_iterable(sizes))


def farthest(table: UnitTable) -> int:
    """The largest change in L1 of a marginal when a unit enters; entries only grow."""
    before = counted(table, OTHER, cliques(table))
    found = 0
    for tables in all_of("a"):
        after = counted(table, together(tables, OTHER), cliques(table))
        moved = [one - other for one, other in zip(after, before, strict=True)]
        assert all((each >= 0).all() for each in moved)
        found = max(found, *(int(each.sum()) for each in moved))
    return found


@pytest.mark.parametrize("order", ["d", ""])
@pytest.mark.parametrize("place", [0, 1])
def test_a_unit_adds_at_most_the_weight_of_one_row_to_any_marginal_of_any_table(place, order):
    table = plan(place, order=order)
    assert table.l1.value == table.apart.value == FULL and table.l2.value == FULL**2
    # attained: the bound is no larger than it must be
    assert farthest(table) == FULL


@pytest.mark.parametrize("place", [0, 1])
def test_a_replaced_unit_moves_a_marginal_by_twice_as_much(place):
    table = plan(place, sf.ReplaceOne)
    assert table.l1.value == 2 * FULL and table.l2.value == 2 * FULL**2
    every = [counted(table, tables, cliques(table)) for tables in all_of("a", 2)]
    most = squared = 0
    for column in zip(*every, strict=True):
        stacked = np.array([each.ravel() for each in column])
        moved = np.abs(stacked[:, None] - stacked[None])
        most = max(most, int(moved.sum(axis=2).max()))
        squared = max(squared, int((moved**2).sum(axis=2).max()))
    assert (most, squared) == (2 * FULL, 2 * FULL**2)


def weigh_rows(family, table, rows):
    """The mutant gives every row of a child the weight of a unit."""
    cells, weights = HONEST(family, table, rows)
    return cells, np.full_like(weights, FULL)


def keep_all(family, table, rows):
    """The mutant keeps the rows beyond the limit, and weighs as if they were not there."""
    (child,) = family.children
    wide = replace(family, children=(replace(child, most=3),))
    cells, _ = HONEST(wide, table, rows)
    held = np.minimum(cells[:, 3], child.most)
    return cells, FULL // held


def follow_others(child, cells, places):
    """The mutant takes for the row before the first one of a unit the last one of another unit."""
    return [places, np.roll(cells, 1, axis=0)]


HONEST = unit_table._child_rows


@pytest.mark.parametrize(
    ("name", "mutant"),
    [("_child_rows", weigh_rows), ("_child_rows", keep_all), ("_followed", follow_others)],
)
def test_a_unit_that_moves_more_is_noticed(name, mutant, monkeypatch):
    monkeypatch.setattr(unit_table, name, mutant)
    with pytest.raises(AssertionError):
        assert farthest(plan(1)) == FULL


def told(tables: Tables) -> Tables:
    """Visits with words: the ward's, and one more for the first day."""
    visits = []
    for row in tables["visits"]:
        word = {None: None, 0: "eye", 1: "heart"}[row["w"]] if row["d"] else f"rare {row['w']}"
        visits.append({**row, "t": word})
    return {**tables, "visits": visits}


def with_words(place: int) -> UnitTable:
    """The tiny clinic with words of visits, of which two are released."""
    dataset = tiny()
    visits = replace(dataset.tables["visits"], columns={"w": sf.Integer(0, 1), "t": sf.Text()})
    dataset = replace(dataset, tables={**dataset.tables, "visits": visits})
    family = family_of(dataset, ("patients", "visits"), texts={"visits.t": "(else)"})
    table = UnitTable(family, rows_of(dataset, family), 1)
    keys = Category("eye", "heart", "(else)")
    opened = table.with_axes([family.own[1][0], TextAxis(Column("t", keys))])
    return replace(opened, table=place)


def weigh_words(family, table, rows):
    """The mutant counts each word of a unit fully."""
    cells, weights = HONEST(family, table, rows)
    return cells, np.full_like(weights, FULL)


def test_words_move_a_marginal_by_no_more_than_a_row(monkeypatch):
    for place in (0, 1):
        table = with_words(place)
        before = counted(table, told(OTHER), cliques(table))
        most = []
        for tables in all_of("a"):
            after = counted(table, told(together(tables, OTHER)), cliques(table))
            most += [int(np.abs(a - b).sum()) for a, b in zip(after, before, strict=True)]
        assert max(most) == FULL
    heart = {"id": "a", "d": 1, "w": 1}
    eye = {"id": "a", "d": 0, "w": 0}
    tables = told({"patients": [{"id": "a", "s": 0}], "visits": [heart, eye]})
    (words,) = counted(table, tables, [("t",)])
    assert words.tolist() == [0, FULL // 2, FULL // 2, 0]
    monkeypatch.setattr(unit_table, "_child_rows", weigh_words)
    (words,) = counted(table, tables, [("t",)])
    assert words.sum() > FULL


def stale(self, opened, names):
    """The mutant keeps what it computed by other axes of the same rows."""
    keep = opened.derived
    opened = SimpleNamespace(derived=lambda rows, key, compute: keep(rows, key[1], compute))
    return MARGINAL(self, opened, names)


MARGINAL = UnitTable.marginal


def counts_by_other_axes() -> list[int]:
    """The days of visits in two cells, then in one cell each, of rows that are open once."""
    family = family_of(clinic_of_days(), ("patients", "visits"))
    table = UnitTable(family, rows_of(clinic_of_days(), family), 1)
    coarse = table.with_axes([replace(family.own[1][0], starts=(0, 2))])
    visits = [{"id": "a", "d": 1}, {"id": "b", "d": 3}]
    patients = [{"id": "a", "s": 0}, {"id": "b", "s": 0}]
    rows = Reference({"patients": patients, "visits": visits}).rows(table.rows, "key")
    opened = Opened(table.rows, rows=rows)
    with opened:
        first = coarse.marginal(opened, ["d"]).tolist()
        return first + table.marginal(opened, ["d"]).tolist()


def clinic_of_days() -> Dataset:
    dataset = tiny()
    visits = replace(dataset.tables["visits"], columns={"d": sf.Integer(0, 3)})
    return replace(dataset, tables={**dataset.tables, "visits": visits})


def test_other_axes_of_the_same_rows_are_counted_anew(monkeypatch):
    expected = [FULL, FULL, 0, 0, FULL, 0, FULL, 0]
    assert counts_by_other_axes() == expected
    monkeypatch.setattr(UnitTable, "marginal", stale)
    assert counts_by_other_axes() != expected


def agree(table: UnitTable) -> bool:
    """Whether each single marginal is a sum of every pair with its column."""
    tables = {"patients": [{"id": "a", "s": 0}, *OTHER["patients"]], "visits": []}
    tables["visits"] = [{"id": "a", "d": 0, "w": None}, {"id": "a", "d": 1, "w": 1}]
    names = [one.name for one in table.family.widened(1)]
    for one, other in itertools.permutations(names, 2):
        single, pair = counted(table, tables, [(one,), (one, other)])
        if (pair.sum(axis=1) != single).any():
            return False
    return True


def test_marginals_of_a_table_agree(monkeypatch):
    """The mutant shares the weight of a unit out among the rows of each marginal that have all
    its values.
    """
    table = plan(1)
    assert agree(table)
    honest = UnitTable.marginal

    def by_marginal(self, opened, names):
        counts = honest(self, opened, names)
        present = counts[tuple(slice(-1) for _ in names)]
        factor = counts.sum() / max(present.sum(), 1)
        found = np.zeros_like(counts)
        found[tuple(slice(-1) for _ in names)] = present * factor
        return found

    monkeypatch.setattr(UnitTable, "marginal", by_marginal)
    assert not agree(table)


def test_the_counts_of_a_clinic_worked_out_by_hand():
    tables = {
        "patients": [{"id": "a", "s": 0}, {"id": "b", "s": 1}],
        # c has no patient row, and its visit counts for nobody
        "visits": [
            {"id": "a", "d": 1, "w": 0},
            {"id": "a", "d": 0, "w": 1},
            {"id": "c", "d": 0, "w": 0},
        ],
    }
    (numbers,) = counted(plan(0), tables, [("s", "number of visits")])
    assert numbers[0].tolist() == [0, 0, FULL, 0] and numbers[1].tolist() == [FULL, 0, 0, 0]
    half = FULL // 2
    names = [("w",), ("place among visits", "w"), ("previous w of visits", "w")]
    single, placed, followed = counted(plan(1), tables, names)
    assert single.tolist() == [half, half, 0]
    assert placed.tolist() == [[0, half, 0], [half, 0, 0], [0, 0, 0]]
    assert followed.tolist() == [[0, 0, 0], [half, 0, 0], [0, half, 0]]


visit = some.sampled_from(VISITS)
unit = some.tuples(some.lists(some.integers(0, 1), max_size=2), some.lists(visit, max_size=4))


@settings(max_examples=40, deadline=None)
@given(some.lists(unit, min_size=1, max_size=4), some.sampled_from(["d", "w", ""]))
def test_among_any_other_units_one_adds_no_more(units, order):
    def tables(chosen):
        found = {"patients": [], "visits": []}
        for who, (sexes, visits) in chosen:
            found["patients"] += [{"id": str(who), "s": sex} for sex in sexes]
            found["visits"] += [{"id": str(who), "d": day, "w": ward} for day, ward in visits]
        return found

    named = list(enumerate(units))
    for place in (0, 1):
        table = plan(place, order=order)
        after = counted(table, tables(named), cliques(table))
        before = counted(table, tables(named[1:]), cliques(table))
        for one, other in zip(after, before, strict=True):
            assert (one >= other).all() and (one - other).sum() <= FULL
