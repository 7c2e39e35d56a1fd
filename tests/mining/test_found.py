# SPDX-License-Identifier: Apache-2.0
"""Tables of results: formats, intervals, quotients."""

from fractions import Fraction

import pytest

from sfumato.errors import WrongUse
from sfumato.mining.found import Released, Table, ratio, released_json
from sfumato.noise import DiscreteGaussian, DiscreteLaplace

TABLE = Table("words", ("term", "n", "low", "high"), [("eye", 5, 3, 7), ("ear", 2, 0, 4)], bar="n")


def test_rows_are_given_in_every_format() -> None:
    rows = [
        {"term": "eye", "n": 5, "low": 3, "high": 7},
        {"term": "ear", "n": 2, "low": 0, "high": 4},
    ]
    assert TABLE.to_dicts() == TABLE.to_arrow().to_pylist() == rows
    assert TABLE.to_pandas().to_dict("records") == TABLE.to_polars().to_dicts() == rows
    assert "eye" in repr(TABLE) and "<table" in TABLE._repr_html_() and len(TABLE) == 2
    assert "eye" in TABLE.plot().svg


def test_no_rows_and_values_of_several_types_have_formats_too() -> None:
    none = Table("words", TABLE.columns, [], bar="n")
    assert none.to_arrow().num_rows == 0 and none.to_arrow().column_names == [*TABLE.columns]
    with pytest.raises(WrongUse, match="draw"):
        none.plot()
    mixed = Table("words", ("term", "n"), [("eye", 1), (3, 2), (None, 3)], bar="n")
    assert mixed.to_arrow()["term"].to_pylist() == ["eye", "3", None]


@pytest.mark.parametrize(
    "noise", [DiscreteGaussian(sigma_squared=Fraction(100)), DiscreteLaplace(Fraction(7))], ids=repr
)
def test_stored_counts_have_the_intervals_of_their_noise(noise: DiscreteGaussian) -> None:
    stored = released_json([("eye",)], [50], noise, threshold=20)
    level = Released.from_json(stored)
    half = noise.half_width("0.95")
    assert level.noise == noise and level.half_width() == half
    assert level.interval(("eye",)) == (50, 50 - half, 50 + half)
    # a key that is not shown had a noisy count below the threshold
    assert level.interval(("ear",)) == (0, 0, 19 + half)
    assert level.half_width(10) == noise.half_width(Fraction(199, 200))


def test_a_quotient_lies_between_its_ends() -> None:
    assert ratio((5, 4, 6), (10, 8, 12)) == (0.5, 4 / 12, 6 / 8)
    assert ratio((5, 4, 6), (10, 0, 20))[2] == float("inf")
    assert ratio((5, 4, 6), (0, 0, 9)) == (0.0, 0.0, 1.0)
