# SPDX-License-Identifier: Apache-2.0
"""What recipes share: costs with a delta, columns by name, labels."""

from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.errors import MissingDeclaration, WrongUse
from sfumato.mining.recipe import Asked, find_column, label_of, label_of_key, most_values
from sfumato.mining.unit_keys import Reading
from sfumato.query.pipeline import compile_rows
from sfumato.sql.row_list import row_list


def test_half_of_a_delta_beside_an_epsilon_is_for_keys_and_all_beside_a_rho() -> None:
    assert Asked(1, None, "1e-6").allowance(keys=True, why="").delta == Fraction(1, 2 * 10**6)
    assert Asked(None, 1, "1e-6").allowance(keys=True, why="").delta == Fraction(1, 10**6)
    assert Asked(1, None, None).allowance(keys=False, why="").delta is None
    with pytest.raises(MissingDeclaration, match="terms"):
        Asked(1, None, None).allowance(keys=True, why="terms are not declared")


def test_columns_are_found_by_name_and_keys_have_labels(session: sf.Session) -> None:
    statement = "SELECT note, ward AS Ward, plain FROM notes"
    plan = compile_rows(row_list(statement, session.dataset), session.dataset)
    assert [find_column(plan, name) for name in ("note", "ward", "WARD")] == [0, 1, 1]
    with pytest.raises(WrongUse, match="plain"):
        find_column(plan, "nose")
    assert label_of_key(Reading(plan, (0,), 1), (0, "red", "eye")) == ("eye", "red", "eye")
    assert label_of_key(Reading(plan, (0,), 1), (None, "red")) == (None, "red")
    assert label_of_key(Reading(plan, (0, 1)), (1, 1)) == ("ear",)
    assert label_of(sf.Date("2020-01-01", "2020-12-31"), 18262) == "2020-01-01"
    assert most_values(plan, [1, 2]) == 4 and most_values(plan, [0]) == 2000
