# SPDX-License-Identifier: Apache-2.0
"""Frames: their values are read as they are, or their column is named and no value of it."""

import duckdb
import pandas
import polars
import pyarrow
import pytest

import sfumato as sf
from sfumato.engines.duckdb import DuckDB
from sfumato.errors import InvalidSource

COLUMNS = {"a": sf.Integer(0, 9), "b": sf.Text()}
CANARY = "canary-4711"


def test_what_is_no_frame_is_refused_without_a_word_of_its_own():
    class Lazy:
        @property
        def columns(self):
            raise RuntimeError(CANARY)

    with pytest.raises(InvalidSource, match="'Lazy' cannot be read") as caught:
        DuckDB({"t": sf.Table(Lazy(), columns=COLUMNS)})
    assert caught.value.__context__ is None


@pytest.mark.parametrize("odd", [["x", 1], [1, CANARY], [{"k": 1}, 3], [object(), None]])
def test_a_column_that_arrow_has_no_type_for_is_named_and_no_value_of_it(odd):
    frame = pandas.DataFrame({"a": [1, 2], "b": odd})
    with pytest.raises(
        InvalidSource, match="Table 't': column 2 of 'DataFrame' has values of several types"
    ) as caught:
        DuckDB({"t": sf.Table(frame, columns=COLUMNS)})
    assert CANARY not in str(caught.value) and caught.value.__context__ is None
    frame["b"] = frame["b"].astype(str)
    DuckDB({"t": sf.Table(frame, columns=COLUMNS)}).close()


def test_a_wide_integer_of_polars_names_its_column_and_is_read_as_the_remedy_says(asker):
    frame = polars.DataFrame({"b": ["x", "y"], "a": polars.Series([4, 3], dtype=polars.Int128)})
    with pytest.raises(
        InvalidSource, match="Table 't': column 2 of 'DataFrame' has values of several types"
    ) as caught:
        DuckDB({"t": sf.Table(frame, columns=COLUMNS)})
    assert "frame[frame.columns[1]].cast(str) in polars" in caught.value.remedy
    frame = frame.with_columns(frame[frame.columns[1]].cast(str))
    ask = asker(frame, COLUMNS)
    assert ask.duckdb(ask.counts()) == {(): (2, 2, 2, 4 + 3)}


@pytest.mark.parametrize("kind", [pyarrow.string(), pyarrow.large_string()])
def test_a_text_that_is_not_utf_8_is_refused_when_the_table_is_opened(kind):
    """Half an emoji, as a damaged file has it: Arrow reads it, and each question would fail."""
    narrow = kind == pyarrow.string()
    stored = pyarrow.array(
        [b"eye", b"a \xed\xa0\xbd b"], pyarrow.binary() if narrow else pyarrow.large_binary()
    )
    damaged = pyarrow.Array.from_buffers(kind, 2, stored.buffers())
    frame = pyarrow.table({"a": [1, 2], "b": damaged})
    with pytest.raises(InvalidSource, match="column 2 of 'Table' has a text that is not Unicode"):
        DuckDB({"t": sf.Table(frame, columns=COLUMNS)})
    DuckDB({"t": sf.Table(frame.slice(0, 1), columns=COLUMNS)}).close()


def test_a_lazy_frame_is_refused_by_name_and_does_not_run(recwarn):
    def run(frame):
        raise AssertionError("the query ran")

    lazy = polars.LazyFrame({"a": [4, 3]}).map_batches(run)
    with pytest.raises(InvalidSource, match="a LazyFrame is a query that has not run") as caught:
        DuckDB({"t": sf.Table(lazy, columns={"a": COLUMNS["a"]})})
    assert "frame.collect()" in caught.value.remedy and not recwarn.list


@pytest.mark.parametrize("kind", [object, "string[python]"])
def test_a_text_that_is_not_unicode_names_its_column_and_no_value(kind):
    odd = pandas.Series(["x", f"{CANARY}\ud800"], dtype=kind)
    frame = pandas.DataFrame({"a": [1, 2], "b": odd})
    with pytest.raises(
        InvalidSource, match="column 2 of 'DataFrame' has a text that is not Unicode"
    ) as caught:
        DuckDB({"t": sf.Table(frame, columns=COLUMNS)})
    assert CANARY not in str(caught.value) and "ud800" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("UHUGEINT", str(2**128 - 1), 9),
        ("UHUGEINT", str(2**127 + 1), 9),
        ("UHUGEINT", "7", 7),
        ("HUGEINT", str(2**127 - 1), 9),
        ("HUGEINT", str(-(2**127)), 0),
    ],
)
def test_a_wide_integer_of_a_relation_is_that_number(asker, kind, value, expected):
    """Arrow has no such type: DuckDB gives it decimals, -1 for 2**128 - 1."""
    # the default connection may be closed by another test
    connection = duckdb.connect()
    relation = connection.sql(f"SELECT CAST('{value}' AS {kind}) AS a, 'x' AS b")
    ask = asker(relation, COLUMNS)
    assert ask.duckdb(ask.counts()) == {(): (1, 1, 1, expected)}
    ask = asker(relation, {"a": sf.Category(value, "1")})
    assert ask.duckdb(ask.counts())[()][1] == 1
