# SPDX-License-Identifier: Apache-2.0
"""Three layers of rows, against plain dictionaries that are copied."""

from hypothesis import given
from hypothesis import strategies as st

from sfumato.ledger.store.layers import Layers

acts = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "gone", "keep", "drop", "commit", "undo"]), st.sampled_from("abc"), st.integers()
    ),
    max_size=30,
)


@given(acts)
def test_layers_are_what_copies_would_be(steps: list[tuple[str, str, int]]) -> None:
    layers, committed, batch, unit = Layers[int](), dict[str, int](), dict[str, int](), dict[str, int]()
    for act, key, value in steps:
        if act == "put":
            layers.put(key, value)
            unit[key] = value
        elif act == "gone":
            layers.put(key, None)
            unit.pop(key, None)
        elif act == "keep":
            layers.keep_unit()
            batch = dict(unit)
        elif act == "drop":
            layers.drop_unit()
            unit = dict(batch)
        elif act == "commit":
            layers.keep_unit()
            layers.commit()
            committed, batch = dict(unit), dict(unit)
        else:
            layers.undo()
            batch, unit = dict(committed), dict(committed)
        assert {each: layers.get(each) for each in "abc" if layers.get(each) is not None} == unit
        assert sorted(layers.values()) == sorted(unit.values())
        assert layers.known == committed


def test_a_row_that_is_gone_is_spoken_of() -> None:
    layers = Layers[int]()
    assert "a" not in layers
    layers.put("a", None)
    assert "a" in layers
    assert layers.changed() == []
    layers.keep_unit()
    assert "a" not in layers
    layers.put("a", 1)
    layers.keep_unit()
    layers.commit()
    layers.put("a", None)
    layers.keep_unit()
    assert "a" in layers
    assert layers.get("a") is None
    layers.commit()
    assert "a" not in layers


def test_rows_keep_the_order_in_which_they_came() -> None:
    layers = Layers[int]()
    for number in range(9):
        layers.put(str(number), number)
        layers.keep_unit()
        if number % 3 == 0:
            layers.commit()
    layers.put("0", 100)
    assert list(layers.values()) == [100, *range(1, 9)]
    assert layers.changed() == [7, 8, 100]
