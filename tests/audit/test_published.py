# SPDX-License-Identifier: Apache-2.0
"""What follows from published tables is compared with an enumeration of all tables."""

import importlib
import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from sfumato.audit import published
from sfumato.errors import InvalidDeclaration, InvalidNumber

PUBLISHED = importlib.import_module("sfumato.audit.published")


def margins(cells, shape, kept, change=lambda count: count):
    """Tables of the sums over all columns but those kept, of an array of joint counts."""
    tables = []
    for columns in kept:
        rows = {}
        for place in itertools.product(*map(range, shape)):
            key = tuple(place[column] for column in columns)
            rows[key] = rows.get(key, 0) + int(cells[place])
        tables.append(
            [
                {
                    **{f"c{column}": str(code) for column, code in zip(columns, key, strict=True)},
                    "n": change(n),
                }
                for key, n in rows.items()
                if n
            ]
        )
    return [table for table in tables if table]


def enumerated(shape, kept, allowed, most):
    """Every array of joint counts up to ``most`` whose sums are allowed."""
    for counts in itertools.product(range(most + 1), repeat=math.prod(shape)):
        cells = np.array(counts).reshape(shape)
        sums = [cells.sum(axis=tuple(set(range(len(shape))) - set(columns))) for columns in kept]
        if all(allowed(index, table) for index, table in enumerate(sums)):
            yield cells


PAIRS = [(0, 1), (1, 2), (0, 2)]


@given(st.lists(st.integers(0, 3), min_size=8, max_size=8))
def test_every_table_with_these_counts_has_the_counts_that_follow(counts):
    shape = (2, 2, 2)
    cells = np.array(counts).reshape(shape)
    tables = margins(cells, shape, PAIRS)
    if not tables:
        return
    # cells that agree with all pairs differ by multiples of one alternating table
    sign = np.array([(-1) ** sum(place) for place in itertools.product(range(2), repeat=3)])
    sign = sign.reshape(shape)
    others = [cells + step * sign for step in range(-6, 7) if (cells + step * sign >= 0).all()]
    result = published(tables)
    assert result.complete and not result.reason
    found = {cell.values: cell.count for cell in result.cells}
    for place in itertools.product(range(2), repeat=3):
        possible = {int(other[place]) for other in others}
        values = tuple(str(place[int(column[1])]) for column in result.columns)
        if values in found:
            assert possible == {found[values]}
        elif len(possible) == 1 and max(possible) > 0:
            # the relaxation is exact here: one free direction with integer ends
            raise AssertionError(f"{values} follows and was not found")


def test_suppressed_counts_are_enumerated():
    shape, kept = (2, 2), [(0,), (1,), (0, 1)]
    cells = np.array([[1, 5], [0, 3]])
    tables = margins(cells, shape, kept, lambda n: "" if n in (1, 2) else n)
    exact = [cells.sum(axis=1), cells.sum(axis=0), cells]

    def allowed(index, table):
        truth = exact[index]
        hidden = (truth == 1) | (truth == 2)
        return bool(
            (table[~hidden] == truth[~hidden]).all() and (np.abs(table[hidden] - 1.5) < 1).all()
        )

    possible = list(enumerated(shape, kept, allowed, 6))
    result = published(tables, suppressed=(1, 2))
    for place in itertools.product(range(2), range(2)):
        counts = {int(other[place]) for other in possible}
        values = tuple(str(code) for code in place)
        assert ([cell.count for cell in result.cells if cell.values == values] or [0])[0] == (
            counts.pop() if len(counts) == 1 else 0
        )


def test_one_table_gives_itself_and_single_columns_give_little():
    rows = [{"sex": "f", "age": "old", "n": 1}, {"sex": "m", "age": "old", "n": 4}]
    assert published([rows]).determined == 5
    by_sex = [{"sex": "f", "n": 2}, {"sex": "m", "n": 2}]
    by_age = [{"age": "old", "n": 2}, {"age": "young", "n": 2}]
    assert published([by_sex, by_age]).determined == 0


def test_rounded_counts_hide_what_exact_ones_show():
    exact = [{"sex": "f", "n": 10}, {"sex": "m", "n": 5}]
    assert published([exact]).determined == 15
    assert published([exact], rounded=5).determined == 0
    # the bounds meet although each count was rounded: at most 2 at least 2 is two
    assert PUBLISHED._bounds(10, None, 5) == (8, 12) and PUBLISHED._bounds(0, None, 10) == (0, 5)


def test_coarser_values_stand_for_others():
    fine = [{"age": "8", "n": 1}, {"age": "9", "n": 2}, {"age": "30", "n": 4}]
    coarse = [{"age": "child", "sex": "f", "n": 3}, {"age": "30", "sex": "m", "n": 4}]
    groups = {"age": {"child": ["8", "9"]}}
    result = published([fine, coarse], groups=groups)
    found = {cell.values: cell.count for cell in result.cells}
    assert found == {("8", "f"): 1, ("9", "f"): 2, ("30", "m"): 4}


def test_noise_leaves_nothing_that_follows():
    by_sex = [{"sex": "f", "n": 3}, {"sex": "m", "n": 2}]
    by_age = [{"age": "old", "n": 6}]
    result = published([by_sex, by_age])
    assert result.determined == 0 and "no table has all these counts" in result.reason
    for count in (-1, "2.5"):
        result = published([[{"sex": "f", "n": count}]])
        assert result.determined == 0 and "noise" in result.reason
    assert published([[{"sex": "f", "n": 0}]]).determined == 0
    nobody = [{"sex": "f", "n": 0}]
    assert published([nobody, [{"age": "old", "n": 1}]]).reason


def test_time_that_is_over_is_said():
    cells = np.random.default_rng(1).integers(0, 3, (6, 6, 6))
    tables = margins(cells, cells.shape, PAIRS)
    assert not published(tables, seconds=1e-6).complete
    whole = published(tables, seconds=60)
    assert whole.complete


def solved(lower, upper):
    """What follows of one cell x with lower <= 10 x <= upper."""
    matrix = sparse.csr_matrix(np.array([[10.0]]))
    program = PUBLISHED._Program(matrix, np.array([lower]), np.array([upper]), np.array([0]))
    domain = PUBLISHED._Domain({"sex": ["f"]}, {})
    return PUBLISHED._solve(program, domain, time.monotonic() + 9).determined


def test_mutant_of_a_floor_for_a_ceiling(monkeypatch):
    # 5 <= 10 x <= 15 leaves 1; 15 <= 10 x <= 17 leaves no integer at all
    assert (solved(5.0, 15.0), solved(15.0, 17.0), solved(5.0, 25.0)) == (1, 0, 0)
    # what is nearly an integer does not exclude it
    assert (solved(9.9999, 10.0001), solved(10.00001, 20.0)) == (1, 0)
    monkeypatch.setattr(PUBLISHED, "_ceiling", math.floor)
    assert solved(15.0, 17.0) == 1


def test_mutant_of_a_missing_combination_that_is_not_zero(monkeypatch):
    rows = [{"a": "x", "b": "x", "n": 1}, {"a": "y", "b": "y", "n": 1}]
    alone = published([rows, [{"a": "x", "n": 1}, {"a": "y", "n": 1}]])
    assert alone.unique == 2
    original = PUBLISHED._bounds

    def open_zero(count, suppressed, rounded):
        return (0, 9) if count == 0.0 else original(count, suppressed, rounded)

    monkeypatch.setattr(PUBLISHED, "_bounds", open_zero)
    assert (
        published(
            [[{"a": "x", "n": 1}, {"a": "y", "n": 1}], [{"b": "x", "n": 1}, {"b": "y", "n": 1}]]
        ).unique
        == 0
    )


def test_bad_input_is_refused():
    good = [{"sex": "f", "n": 1}]
    for tables, arguments in (
        ([], {}),
        ([[]], {}),
        ([[{"sex": "f"}]], {}),
        ([[{"sex": "f", "n": ""}]], {}),
        ([[{"sex": "f", "n": "many"}]], {}),
        ([[{"sex": "f", "n": "nan"}]], {}),
        ([good + good], {}),
        ([[*good, {"age": "old", "n": 1}]], {}),
        ([[{f"c{i}": str(v), "n": 1} for v in range(10)] for i in range(7)], {}),
    ):
        with pytest.raises(InvalidDeclaration):
            published(tables, **arguments)
    for arguments in (
        {"suppressed": (9, 1)},
        {"rounded": 1},
        {"seconds": 0},
        {"seconds": math.nan},
    ):
        with pytest.raises(InvalidNumber):
            published([good], **arguments)
