# SPDX-License-Identifier: Apache-2.0
"""Parts from rows and from columns: the same, and of groups that are not declared no more than what
is asked for.
"""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines import result_rows as gathering
from sfumato.engines.result_rows import Columns, columns, gather
from sfumato.plan.aggregate import CountRows, CountUnits, Mean, Quantiles
from tests.contracts.examples import MEDIAN, PEOPLE, N
from tests.contracts.world import by, plan

LETTERS = by(PEOPLE, "people.c")
MIXED = plan(PEOPLE, CountRows(), Quantiles(N, MEDIAN), Mean(N), keys=(LETTERS,))
PAIRS = plan(PEOPLE, CountUnits(), Mean(N), keys=(LETTERS, LETTERS))

codes = st.none() | st.sampled_from(["", "a", "b", "\0", "é"])
found = st.dictionaries(
    st.tuples(codes, codes),
    st.tuples(*[st.integers(0, 3) | st.integers(0, 2**62)] * 3),
    max_size=12,
)


def table(groups):
    """As an engine gives it: counts of 64 bits, sums of 128 as decimals."""
    rows = [(*group, *integers) for group, integers in groups.items()]
    kinds = [pa.string(), pa.string(), pa.int64(), pa.decimal128(38), pa.decimal128(38)]
    cells = list(zip(*rows, strict=True)) or [()] * len(kinds)
    return pa.table(
        {
            f"c{index}": pa.array(each, kind)
            for index, (each, kind) in enumerate(zip(cells, kinds, strict=True))
        }
    )


def test_rows_of_statements_become_parts():
    assert gather(MIXED, (0, 2), [(1, 5, 6, 7), (None, 0, 0, 0)]) == {
        0: {(1,): (5,)},
        2: {(1,): (6, 7)},
    }
    assert gather(MIXED, (1,), [(1, 0, 4), (2, 7, 1), (1, 3, 2)]) == {
        1: {(1,): (0, 4, 3, 2), (2,): (7, 1)}
    }


@settings(deadline=None)
@given(found)
def test_columns_are_the_parts_of_their_rows(groups):
    given_columns = table(groups)
    rows = [(*group, *integers) for group, integers in groups.items()]
    assert columns(PAIRS, (0, 1), given_columns) == gather(PAIRS, (0, 1), rows)
    units, mean = columns(PAIRS, (0, 1), given_columns).values()
    # not only equal: in the same order, and of the same kind
    assert [*map(repr, mean.items())] == [*map(repr, gather(PAIRS, (0, 1), rows)[1].items())]
    assert units.first.tolist() == [integers[0] for integers in groups.values()]


@settings(deadline=None)
@given(found, st.data())
def test_of_some_groups_columns_give_the_integers_of_those(groups, data):
    _, mean = columns(PAIRS, (0, 1), table(groups)).values()
    asked = (
        data.draw(st.lists(st.sampled_from([*groups, ("no", "where")]), unique=True))
        if groups
        else []
    )
    some = mean.of(asked)
    assert {group: some[group] for group in asked if group in some} == {
        group: groups[group][1:] for group in asked if group in groups
    }
    places = data.draw(st.lists(st.integers(0, len(groups) - 1))) if groups else []
    assert mean.groups(np.array(places, np.int64)) == [[*groups][place] for place in places]


def test_leaves_of_some_groups_are_theirs():
    leaves = pa.table(
        {"k": [1, 2, 1], "leaf": [0, 7, 3], "n": pa.array([4, 1, 2], pa.decimal128(38))}
    )
    (part,) = columns(MIXED, (1,), leaves).values()
    assert part.of([(1,)]) == {(1,): (0, 4, 3, 2)}
    assert part[2,] == (7, 1)
    found = part.leaves([(2,), (1,), (5,)])
    assert [[array.tolist() for array in pair] for pair in found] == [
        [[7], [1]],
        [[0, 3], [4, 2]],
        [[], []],
    ]


ROWS_OF_LEAVES = st.dictionaries(
    st.tuples(st.sampled_from([None, "a", "b"]), st.integers(0, 2) | st.none(), st.integers(0, 7)),
    st.integers(0, 2**56),
    max_size=30,
)


@settings(deadline=None)
@given(ROWS_OF_LEAVES, st.data())
def test_leaves_of_columns_are_those_of_their_rows(rows, data):
    keys = list(zip(*rows, strict=True)) or [(), (), ()]
    given_columns = pa.table(
        {
            "word": pa.array(keys[0], pa.string()),
            "code": pa.array(keys[1], pa.int8()),
            "leaf": pa.array(keys[2], pa.int64()),
            "n": pa.array([*map(Decimal, rows.values())], pa.decimal128(38)),
        }
    )
    by_both = plan(PEOPLE, Quantiles(N, MEDIAN), keys=(LETTERS, LETTERS))
    (part,) = columns(by_both, (0,), given_columns).values()
    asked = st.tuples(st.sampled_from([None, "a", "b", "c"]), st.integers(0, 200) | st.none())
    groups = data.draw(st.lists(asked, unique=True))
    expected = []
    for word, code in groups:
        own = {leaf: n for (*group, leaf), n in rows.items() if group == [word, code] and n}
        expected.append([sorted(own), [own[leaf] for leaf in sorted(own)]])
    found = part.leaves(groups)
    assert [[array.tolist() for array in pair] for pair in found] == expected


def test_what_does_not_fit_is_no_number_of_units():
    units, _ = columns(
        PAIRS, (0, 1), table({}).append_column("more", pa.array([], pa.int64()))
    ).values()
    assert units.first.tolist() == []
    wide = pa.table({"a": ["x"], "b": ["y"], "n": pa.array([Decimal(2**70)], pa.decimal128(38))})
    with pytest.raises(pa.ArrowInvalid):
        _ = columns(PAIRS, (0,), wide)[0].first


def test_groups_that_are_not_shown_never_become_objects(tmp_path, monkeypatch):
    made = []
    tuples = gathering._tuples
    monkeypatch.setattr(
        gathering, "_tuples", lambda given: made.append(given.num_rows) or tuples(given)
    )
    rows = pa.table(
        {"who": range(9000), "word": ["often"] * 1000 + [f"once {index}" for index in range(8000)]}
    )
    words = sf.Table(
        rows, unit=sf.Unit("who", max_rows=1, max_groups=1), columns={"word": sf.Text()}
    )
    with sf.connect(
        {"words": words}, dataset="words", budget=sf.Budget(9, "1e-6"), ledger=tmp_path / "l.db"
    ) as session:
        answer = session.query(
            "SELECT word, COUNT(*) AS n FROM words GROUP BY word", epsilon=1, delta="1e-14"
        )
    # a lone word is shown with less than 1e-14, one of all 8000 with less than 1e-10
    assert [row[0] for row in answer.rows] == ["often"]
    assert set(made) == {1}
    assert isinstance(columns(PAIRS, (0, 1), table({}))[0], Columns)
