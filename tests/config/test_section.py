# SPDX-License-Identifier: Apache-2.0
"""The reader of a section: what it returns, and what each refusal names."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.config.section import Key, flag, number, placed, read, text, whole
from sfumato.config.table import COLUMNS
from sfumato.errors import InvalidConfig, InvalidNumber
from tests.config.key_tables import SECTIONS

KEYS = (
    Key("sql", text, '"SELECT ..."', "the statement"),
    Key("weight", number, "2", "its share of the cost", 1),
    Key("is_open", flag, "true", "whether anybody may ask", default=None),
)


def refused(form: object) -> InvalidConfig:
    with pytest.raises(InvalidConfig) as caught:
        read(form, "questions.rides", KEYS)
    return caught.value


def test_what_is_left_out_has_its_default() -> None:
    assert read({"sql": "S", "weight": "0.5"}, "q", KEYS) == {
        "sql": "S",
        "weight": "0.5",
        "is_open": None,
    }


@pytest.mark.parametrize(
    ("form", "problem", "allowed", "remedy"),
    [
        (3, "questions.rides is not a table of TOML.", "sql, weight, is_open", ""),
        (
            {"sql": "S", "wieght": 2},
            "questions.rides: unknown key 'wieght'.",
            "sql, weight, is_open",
            "Did you mean weight?",
        ),
        ({"zzz": 2}, "questions.rides: unknown key 'zzz'.", "sql, weight, is_open", ""),
        ({}, "questions.rides: sql is missing.", "", 'sql = "SELECT ..."'),
        (
            {"sql": ""},
            "questions.rides: sql = ''.",
            "a text that is not empty",
            'sql = "SELECT ..."',
        ),
        (
            {"sql": "S", "weight": [1]},
            "questions.rides: weight = a list.",
            'a number: "0.1", "1e-6" or 2',
            "weight = 2",
        ),
        (
            {"sql": "S", "is_open": "yes"},
            "questions.rides: is_open = 'yes'.",
            "true or false",
            "is_open = true",
        ),
    ],
)
def test_a_refusal_names_place_allowed_values_example_and_the_near_key(
    form: object, problem: str, allowed: str, remedy: str
) -> None:
    error = refused(form)
    assert (error.problem, error.allowed, error.remedy) == (problem, allowed, remedy)


def test_no_refusal_quotes_a_password() -> None:
    error = refused({"sql": "S", "weight": "postgresql://ada:hunter2@db/x"})
    assert "hunter2" not in str(error) and "questions.rides: weight" in str(error)


@pytest.mark.parametrize("reader", [text, number, whole, flag])
@given(st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.none()))
def test_a_reader_returns_a_value_of_its_kind_or_refuses(reader: Any, value: object) -> None:
    kinds = {text: (str,), number: (int, str), whole: (int,), flag: (bool,)}
    try:
        assert type(reader(value)) in kinds[reader]
    except InvalidConfig as error:
        assert error.allowed


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6))
def test_a_number_means_the_same_in_quotes_and_without(written: Any) -> None:
    def value(shown: object) -> object:
        return type(written)(number(shown))

    assert value(str(written)) == written
    assert value(float(written)) == type(written)(repr(float(written)))


def test_what_a_constructor_refuses_gets_its_place() -> None:
    with pytest.raises(InvalidConfig) as caught, placed("budget"):
        raise InvalidNumber("epsilon = 0 is out of range.", allowed="greater than 0", remedy="r")
    error = caught.value
    assert error.problem == "budget: epsilon = 0 is out of range."
    assert (error.allowed, error.remedy) == ("greater than 0", "r")


def test_every_example_of_a_key_is_read_and_every_key_says_what_it_means() -> None:
    for keys in [*SECTIONS.values(), *COLUMNS.values()]:
        for key in keys:
            (example,) = tomllib.loads(key.line).values()
            assert key.read(example) is not None
            assert key.help and not key.help.endswith(".")
        assert len({key.name for key in keys}) == len(keys)
