# SPDX-License-Identifier: Apache-2.0
"""What a codebook says of a column, as a declaration."""

from sfumato.cli.codebook_entry import entry, number


def test_codes_of_missing_values_are_no_values() -> None:
    found = entry("integer", values={"1": "Male", "2": "Female", "-9": "Refused"}, missing=[-9])
    assert found == {
        "type": "category", "values": {"1": "Male", "2": "Female"}, "missing": ["-9"],
    }  # fmt: skip


def test_labels_that_are_the_same_are_left_out() -> None:
    assert entry(values={"1": "yes", "2": "yes"})["values"] == ["1", "2"]
    assert entry(values={"F": "F", "M": "M"})["values"] == ["F", "M"]


def test_bounds_belong_to_numbers_and_times_alone() -> None:
    assert entry("text", bounds=(0, 9)) == {"type": "text"}
    assert entry("real", bounds=(None, "0.5")) == {"type": "real", "upper": "0.5"}
    assert entry("", bounds=(0, 9)) == {}


def test_a_format_is_kept_if_it_is_one_of_ours() -> None:
    assert entry("date", format="%d/%m/%Y") == {"type": "date", "format": "%d/%m/%Y"}
    assert entry("date", format="default") == entry("date", format="%y") == {"type": "date"}


def test_empty_markers_say_nothing() -> None:
    assert entry("integer", missing=["", "NA", "NA"]) == {"type": "integer", "missing": ["NA"]}


def test_numbers() -> None:
    assert [number(text) for text in (" 7 ", "-9", "1e3", "x", 0.5)] == [7, -9, "1e3", "x", 0.5]
