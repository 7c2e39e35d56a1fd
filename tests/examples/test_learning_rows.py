# SPDX-License-Identifier: Apache-2.0
"""The rows of the demo of learning are whole, and inside what is declared."""

from sfumato.examples.learning_rows import COLUMNS, adult, digits
from sfumato.metadata.column import Category, Integer


def test_the_published_splits_are_whole() -> None:
    train, test = adult("train"), adult("test")
    assert (train.num_rows, test.num_rows) == (32_561, 16_281)
    # as published: 7,841 of the training rows have the larger income
    assert train["income"].to_pylist().count(">50K") == 7_841
    assert train.column_names == list(COLUMNS)


def test_every_value_is_declared() -> None:
    rows = adult("train")
    for name, kind in COLUMNS.items():
        if isinstance(kind, Category):
            assert set(rows[name].to_pylist()) <= {*kind.values, "?"}
    for name, lower, upper in [("age", 17, 90), ("education", 1, 16), ("hours", 0, 99)]:
        assert COLUMNS[name] == Integer(lower, upper)
        assert all(lower <= value <= upper for value in rows[name].to_pylist())


def test_pictures_are_numbers_and_their_digit() -> None:
    _, held = digits()
    assert held.num_rows == 450
    assert set(held["digit"].to_pylist()) == set("0123456789")
    pixels = held["picture"].combine_chunks().flatten().to_numpy()
    assert len(pixels) == 450 * 64 and pixels.min() == 0 and pixels.max() == 16
