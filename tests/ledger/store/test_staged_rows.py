# SPDX-License-Identifier: Apache-2.0
"""Three layers of rows, against plain dictionaries that are copied."""

from hypothesis import given
from hypothesis import strategies as st

from sfumato.ledger.store.staged_rows import Layers

acts = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "keep", "drop", "sent", "commit", "undo"]),
        st.sampled_from("abc"),
        st.integers(1),
    ),
    max_size=30,
)


def even(row: int) -> bool:
    """What is worth keeping here."""
    return row % 2 == 0


@given(acts)
def test_layers_are_what_copies_would_be(steps: list[tuple[str, str, int]]) -> None:
    """What is kept, or else what the tables say, is the truth.

    And what is worth keeping is all there.
    """
    layers, tables = Layers[int](), dict[str, int]()
    committed, batch, transaction = dict[str, int](), dict[str, int](), dict[str, int]()
    for act, key, value in steps:
        if act == "put":
            layers.put(key, value)
            transaction[key] = value
        elif act == "keep":
            layers.keep_transaction()
            batch = dict(transaction)
        elif act == "drop":
            layers.drop_transaction()
            transaction = dict(batch)
        elif act == "sent":
            layers.sent(even)
            tables, batch = dict(transaction), dict(transaction)
        elif act == "commit":
            layers.keep_transaction()
            layers.commit(even)
            tables, committed, batch = dict(transaction), dict(transaction), dict(transaction)
        else:
            layers.undo()
            tables, batch, transaction = dict(committed), dict(committed), dict(committed)
        assert {each: layers.get(each) or tables.get(each) for each in "abc"} == {
            each: transaction.get(each) for each in "abc"
        }
        assert sorted(filter(even, layers.values())) == sorted(filter(even, transaction.values()))
        assert layers.known == {each: row for each, row in committed.items() if even(row)}


def test_rows_that_the_tables_have_need_no_memory() -> None:
    layers = Layers[int]()
    for number in range(1, 9):
        layers.put(str(number), number)
    layers.keep_transaction()
    layers.put("9", 9)
    layers.sent(even)
    assert list(layers.values()) == [2, 4, 6, 8]


def test_rows_keep_the_order_in_which_they_came() -> None:
    layers = Layers[int]()
    for number in range(1, 10):
        layers.put(str(number), number)
        layers.keep_transaction()
        if number % 3 == 0:
            layers.commit(lambda _: True)
    layers.put("1", 100)
    assert list(layers.values()) == [100, *range(2, 10)]
    assert layers.changed() == [100]
