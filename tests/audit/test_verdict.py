# SPDX-License-Identifier: Apache-2.0
"""What verdicts come to, and how they are shown."""

from fractions import Fraction
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.verdict import Verdict, number, overall, shown, table
from sfumato.exact.bracket import Bracket


def test_one_violation_is_enough_and_all_have_to_hold():
    for size in range(4):
        for each in product(Verdict, repeat=size):
            if Verdict.VIOLATED in each:
                assert overall(each) is Verdict.VIOLATED
            else:
                assert (overall(each) is Verdict.HOLDS) == (set(each) == {Verdict.HOLDS})


CELLS = st.text(st.characters(codec="ascii", exclude_categories=("C", "Z")), max_size=9)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=5))
def test_a_table_has_every_cell_in_its_column(rows):
    heading, line, *body = table(rows).split("\n")
    starts = [0]
    for column in list(zip(*rows, strict=True))[:-1]:
        starts.append(starts[-1] + max(map(len, column)) + 2)
    assert set(line) <= {"-", " "}
    for row, text in zip(rows, [heading, *body], strict=True):
        assert all(text[start:].startswith(cell) for start, cell in zip(starts, row, strict=True))


def test_numbers_are_short():
    assert number(Fraction(1, 2)) == "0.5" and number(Fraction(1, 10**6)) == "0.000001"
    assert number(Fraction(1, 3)) == "1/3" and number(Fraction(1, 10**9)) == "1e-09"
    assert number(Fraction(123456789, 10**12)) == "0.000123457"
    assert shown(Bracket(0.5, 1.25)) == "[0.5, 1.25]"
