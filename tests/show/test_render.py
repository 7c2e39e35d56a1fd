# SPDX-License-Identifier: Apache-2.0
"""Tables for people: numbers, text and HTML."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.show.render import cells, display_width, html_table, interval, key, number, text_table


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (-1234567, "-1,234,567"), (1234567.8, "1,234,570"),
        (99999.94, "99,999.9"), (123.456, "123.46"),
        (0.0001234567, "0.000123457"), (-0.5, "-0.5"), (None, "NULL"), (True, "True"),
        ("text", "text"), (10**30, f"{10**30:,}"),
    ],
)  # fmt: skip
def test_a_number_for_people(value: object, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (None, ""),
        ({"low": None, "high": None}, "unbounded"),
        ({"low": -1.5, "high": 2000}, "[-1.5, 2,000]"),
    ],
)
def test_an_interval_for_people(error: object, text: str) -> None:
    assert interval(error) == text


@pytest.mark.parametrize(
    ("value", "low", "high", "shown"),
    [
        (44906116, 44352784, 45459448, ["44,906,100", "[44,352,800, 45,459,400]"]),
        (44906116.5, 44906113.0, 44906119.0, ["44,906,116.5", "[44,906,113.0, 44,906,119.0]"]),
        (12345678, 12345675, 12345681, ["12,345,678", "[12,345,675, 12,345,681]"]),
        (44793.7123, 44793.7, 44793.725, ["44,793.712", "[44,793.700, 44,793.725]"]),
        (44793.7123, 44362.281, 45221.634, ["44,793.7", "[44,362.3, 45,221.6]"]),
        (5.29489856535e26, 5.2e26, 5.4e26, ["5.2949e+26", "[5.2e+26, 5.4e+26]"]),
        (281, 275, 287, ["281", "[275, 287]"]),
        (3.0000000000000004, -1.0, 7.0, ["3", "[-1, 7]"]),
    ],
)  # fmt: skip
def test_a_cell_has_six_digits_or_those_that_its_error_allows(
    value: object, low: object, high: object, shown: list[str]
) -> None:
    columns = [{"name": "n", "released": True}]
    assert cells(columns, [[value]], [[{"low": low, "high": high}]])[1] == [shown]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_has_at_most_six_digits_and_is_read_back(value: float) -> None:
    text = number(value).replace(",", "")
    digits = text.partition("e")[0].lstrip("-0.").replace(".", "")
    assert len(digits.rstrip("0") if abs(value) >= 1e5 else digits) <= 6
    assert float(text) == pytest.approx(value, rel=5.1e-5, abs=0)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1 / 3, "0.333333"), (0.1 + 0.2, "0.3"), (1234567.25, "1234567.25"), (1e-9, "1e-09"),
     (-2.5, "-2.5")],
)  # fmt: skip
def test_a_key_has_at_most_six_decimals(value: float, text: str) -> None:
    assert key(value) == text


def test_each_released_column_is_followed_by_its_interval() -> None:
    columns = [{"name": "sex", "released": False}, {"name": "n", "released": True}]
    error = {"low": 1, "high": 3, "half_width": 1}
    assert cells(columns, [["F", 2]], [[None, error]]) == (
        ["sex", "n", "95% interval"],
        [["F", "2", "[1, 3]"]],
    )
    assert cells(columns, [], []) == (["sex", "n", "95% interval"], [])


def test_a_text_table_is_aligned_and_cut() -> None:
    shown = text_table(["a", "long name"], [["1", "2"], ["333", "4"]], limit=1).splitlines()
    assert shown == ["a  long name", "-  ---------", "1          2", "... 1 more rows"]


class Reader(HTMLParser):
    """Reads a table back: the tags that were opened, and the texts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        self.texts.append("")

    def handle_data(self, data: str) -> None:
        self.texts[-1] += data


@given(st.text(st.characters(exclude_categories=("C",)), max_size=12))
def test_html_shows_any_text_and_runs_none_of_it(text: str) -> None:
    reader = Reader()
    reader.feed(html_table([text], [[text]]))
    reader.close()
    assert reader.tags == ["table", "thead", "tr", "th", "tbody", "tr", "td"]
    assert [reader.texts[3], reader.texts[6]] == [text, text]


@pytest.mark.parametrize("text", ["two\nlines", "\x1b[2J", "\x9b1m", "a\rb", "\u2028", "\u202egnp"])
def test_no_text_of_the_data_is_a_command_to_a_terminal(text: str) -> None:
    shown = text_table([text], [[text]])
    assert len(shown.splitlines()) == 3
    assert shown.replace("\n", "").isprintable()
    assert "\u200d" in text_table(["x"], [["a\u200db"]])


def test_a_long_html_table_says_how_much_is_left_out() -> None:
    assert html_table(["a"], [["1"]] * 5, limit=3).endswith("<p>... 2 more rows</p>")


def test_keys_have_no_separators_and_no_empty_decimals() -> None:
    shown = [key(value) for value in (2010, -1200, 900.0, 0.1, None, True, "a", 10**6)]
    assert shown == ["2010", "-1200", "900", "0.1", "NULL", "True", "a", "1000000"]


def test_wide_characters_take_two_columns_of_the_terminal() -> None:
    lines = text_table(["地区", "n"], [["北京市", "1"], ["x", "23"]]).splitlines()
    assert lines == ["地区    n", "------  --", "北京市   1", "     x  23"]
    assert {display_width(line) for line in lines[1:]} == {10}
