# SPDX-License-Identifier: Apache-2.0
"""Counts of how values are read: by hand, against the reference, and against a question."""

from contextlib import closing
from decimal import Decimal
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines import inspect_columns as room
from sfumato.engines import sql_tree as sql
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.inspect_columns import Form, inspect_column, read_through
from sfumato.engines.value_codes import code_of
from sfumato.errors import InvalidSource
from sfumato.metadata.column import Column
from sfumato.plan.aggregate import CountRows, CountValues

INTEGER = sf.Integer(0, 120, missing=["N", "-9"])
DAY = sf.Date("2024-01-01", "2024-12-31")
MOMENT = sf.Timestamp("2024-01-01", "2024-12-31", zone="Europe/London", missing="N")


def inspected(source, kind):
    """The facts of the column ``x`` of a source."""
    table = sf.Table(source, columns={"x": kind})
    with closing(DuckDB({"t": table})) as engine:
        return inspect_column(engine, "t", Column("x", kind))


def frame(values, kind=None):
    return pa.table({"x": pa.array(values, kind)})


def counts(facts):
    """Read, empty, marked, not read, below and above."""
    return (facts.read, facts.empty, facts.marked, facts.unread, facts.below, facts.above)


def forms(facts):
    return [(form.shown, form.count) for form in facts.forms]


# --- planted faults ------------------------------------------------------------------------


PLANTED = [
    # separators of thousands, markers, words, values beyond the bounds
    (
        INTEGER,
        ["1,000", "2,500", "N", "-9", None, "", "30", "-1", "121", "twelve", "3.6"],
        (4, 1, 2, 4, 1, 1),
        [("9,999", 2), ("", 1), ("aaaaaa", 1)],
    ),
    (sf.Integer(0, 9), ["10.0", "9.0", "1e400", "0x1", " 7 "], (4, 0, 0, 1, 0, 2), [("9a9", 1)]),
    (sf.Real(0, 1), ["0,5", "0.5", "nan", "inf", "1.5", "-.5"], (3, 0, 0, 3, 1, 1), None),
    (
        DAY,
        ["31/12/2024", "01/02/2024", "2024-02-30", "2023-12-31", "2025-01-01", "2024-05-05"],
        (3, 0, 0, 3, 1, 1),
        [("dd/mm/yyyy", 2), ("yyyy-mm-dd", 1)],
    ),
    (DAY, ["12/31/2024", "01/02/2024"], (0, 0, 0, 2, 0, 0), [("mm/dd/yyyy", 2)]),
    (
        MOMENT,
        [
            *("31/12/2024 10:00", "12/31/2024 10:00", "13/12/2024 09:30", "2024-03-31 01:30"),
            *("2023-12-31 23:59:59", "2024-12-31 23:59:59Z", "2025-01-01 00:30+01", "N", None),
        ],
        (3, 1, 1, 4, 1, 0),
        [("99/99/9999 99:99", 3), ("yyyy-mm-dd 99:99", 1)],
    ),
    (sf.Boolean(), ["Y", "N", "Y", None], (0, 1, 0, 3, 0, 0), [("A", 3)]),
    (sf.Boolean(true="Y", false="N"), ["Y", "N", "y"], (2, 0, 0, 1, 0, 0), [("a", 1)]),
    (sf.Category("Male", "F"), ["male", "Male ", "Male"], (1, 0, 0, 2, 0, 0), None),
    # what UTF-8 looks like that was read as Latin-1
    (sf.Category("Mann", "Männer"), ["MÃ¤nner", "Mann"], (1, 0, 0, 1, 0, 0), [("AA?aaaa", 1)]),
    (sf.Text(missing="N"), ["N", "", "x", None], (2, 1, 1, 0, 0, 0), []),
    (sf.Integer(0, 9), [None, None], (0, 2, 0, 0, 0, 0), []),
]


@pytest.mark.parametrize(("kind", "values", "counted", "seen"), PLANTED, ids=repr)
def test_planted_faults_are_counted(kind, values, counted, seen):
    facts = inspected(frame(values, pa.string()), kind)
    assert facts.rows == len(values)
    assert counts(facts) == counted
    if seen is not None:
        assert forms(facts) == seen


@pytest.mark.parametrize(
    ("kind", "values", "stored", "counted"),
    [
        (sf.Integer(0, 9), [1, -1, 10, None, 9], pa.int32(), (4, 1, 0, 0, 1, 1)),
        (sf.Integer(5, 9, missing="-9"), [7, -9, 8], pa.int64(), (2, 0, 1, 0, 0, 0)),
        (sf.Real(0, 1), [float("nan"), float("inf"), -2.0], pa.float64(), (2, 0, 0, 1, 1, 1)),
        (sf.Integer(0, 9), [True, None], pa.bool_(), (1, 1, 0, 0, 0, 0)),
        (sf.Category("1", "2"), [1.0, 2.5, 2.0], pa.float64(), (2, 0, 0, 1, 0, 0)),
        (MOMENT, [-1, 0, 10**18, None], pa.timestamp("us"), (3, 1, 0, 0, 2, 1)),
        (MOMENT, [-1, 0, 10**18, None], pa.timestamp("us", "UTC"), (3, 1, 0, 0, 2, 1)),
        (sf.Text(), [None, None], pa.null(), (0, 2, 0, 0, 0, 0)),
    ],
    ids=repr,
)
def test_stored_types_are_counted_too(kind, values, stored, counted):
    assert counts(inspected(frame(values, stored), kind)) == counted


def test_declared_values_that_never_occur_are_named_by_their_labels():
    kind = sf.Category({"1": "male", "2": "female", "3": "other"}, missing="9")
    assert inspected(frame(["1", "9", "4"]), kind).never == ("female", "other")
    assert inspected(frame(["true", None]), sf.Boolean()).never == ("False",)
    assert inspected(frame(["7"]), sf.Integer(0, 9)).never == ()


def test_the_three_most_frequent_forms_are_kept():
    values = ["a"] * 3 + ["bb"] * 5 + ["c-c"] * 2 + ["d+d"] + ["1"]
    assert inspected(frame(values), sf.Integer(0, 9)).forms == (
        Form("aa", 5),
        Form("a", 3),
        Form("a-a", 2),
    )


def test_a_table_without_rows_has_no_faults():
    facts = inspected(frame([], pa.string()), sf.Category("a"))
    assert (facts.rows, counts(facts), facts.never) == (0, (0, 0, 0, 0, 0, 0), ("a",))


def test_a_csv_is_read_as_a_question_reads_it(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('x\n"1,000"\n""\n\n7\n130\n', encoding="utf-8")
    facts = inspected(path, INTEGER)
    assert (counts(facts), forms(facts)) == ((2, 2, 0, 1, 0, 1), [("9,999", 1)])


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1", "gbk"])
def test_a_csv_in_another_encoding_is_refused_or_counted_and_never_quoted(tmp_path, encoding):
    path = tmp_path / "x.csv"
    word = "中" if encoding == "gbk" else "é"
    path.write_text(f"x\n{word}\nplain\n", encoding=encoding)
    try:
        facts = inspected(path, sf.Category("plain", word))
    except sf.SfumatoError as refused:
        assert word not in str(refused)
        assert "plain" not in str(refused)
    else:
        assert facts.read + facts.missing + facts.unread == facts.rows


# --- the same as the reference and as a question ---------------------------------------------

VALUES = st.one_of(
    st.none(),
    st.sampled_from(["N", "-9", "1,000", "", "nan", "inf", "-inf", "1e999", "0", "120", "120.4"]),
    st.integers(-200, 300).map(str),
    st.floats(-150, 150).map(repr),
    st.text(max_size=3),
    st.dates().map(str),
)
KINDS = [
    INTEGER,
    sf.Real(-1, 100),
    sf.Date("1990-01-01", "2010-01-01", missing="N"),
    sf.Category("N", "0", "120"),
    sf.Boolean(true="0", false="120"),
    sf.Text(missing="N"),
]


def by_hand(values, kind):
    """The counts of ``counts``, a value at a time, by the codes of the reference."""
    read = empty = marked = below = above = 0
    for value in values:
        code = code_of(Column("x", kind), value)
        if value is None:
            empty += 1
        elif value in (kind.missing or ()):
            marked += 1
        elif code is not None:
            read += 1
            below += is_beyond(kind, value, -1)
            above += is_beyond(kind, value, 1)
    return (read, empty, marked, len(values) - read - empty - marked, below, above)


def is_beyond(kind, value, side):
    """Whether a value that was read lies below (-1) or above (1) the declared range."""
    if isinstance(kind, sf.Date):
        lower, upper = "1990-01-01", "2010-01-01"
        return value < lower if side < 0 else value > upper
    if isinstance(kind, sf.Integer | sf.Real):
        lower, upper = (0, 120) if isinstance(kind, sf.Integer) else (-1, 100)
        return float(value) < lower if side < 0 else float(value) > upper
    return False


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
@given(values=st.lists(VALUES, max_size=8))
def test_the_counts_are_those_of_the_reference(kind, values):
    values = [value and value.replace("\0", "") for value in values]
    facts = inspected(frame(values, pa.string()), kind)
    assert counts(facts) == by_hand(values, kind)
    assert sum(form.count for form in facts.forms) <= facts.unread
    assert bool(facts.forms) == bool(facts.unread)


@pytest.mark.parametrize("name", ["ends", "codes", "reading"])
def test_a_count_by_other_expressions_than_a_question_is_noticed(monkeypatch, name):
    kind = sf.Integer(0, 9)
    values = ["1", "10", "5", "x"]
    right = getattr(room, name)
    wrong = {
        "ends": lambda given: right(sf.Integer(0, 99)),
        "codes": lambda scan, tables: (
            [item.value.is_present.named(item.name) for item in right(scan, tables)[0]],
            (),
        ),
        "reading": lambda column, given, source: right(column, sf.Real(0, 9), source),
    }
    assert counts(inspected(frame(values), kind)) == by_hand_of_nine(values)
    monkeypatch.setattr(room, name, wrong[name])
    assert counts(inspected(frame(values), kind)) != by_hand_of_nine(values)


def by_hand_of_nine(values):
    """The counts of ``values`` as integers from 0 to 9."""
    assert values == ["1", "10", "5", "x"]
    return (3, 0, 0, 1, 0, 1)


def test_the_values_that_are_read_are_those_that_a_question_counts(asker):
    for kind, values, _, _ in PLANTED:
        data = frame(values, pa.string())
        asked = asker(data, {"x": kind})
        answer = asked.duckdb(asked.plan(CountRows(), CountValues(asked.value("x"))))
        facts = inspected(data, kind)
        assert answer == {(): (facts.rows, facts.read)}


# --- failures ------------------------------------------------------------------------------


def damaged(tmp_path):
    """A file with one string that is not UTF-8."""
    raw = pa.array([b"a", b"\xff\xfe"])
    pq.write_table(
        pa.table({"x": pa.Array.from_buffers(pa.string(), 2, raw.buffers())}),
        tmp_path / "x.parquet",
    )
    return tmp_path / "x.parquet"


def test_a_damaged_column_is_named_without_its_content(tmp_path):
    path = damaged(tmp_path)
    with pytest.raises(InvalidSource, match=r"t\.x cannot be read to its end"):
        inspected(path, sf.Text())
    tables = {"t": sf.Table(path, columns={"x": sf.Text()})}
    with (
        closing(DuckDB(tables)) as engine,
        pytest.raises(InvalidSource, match=r"t\.x cannot be read to its end") as refused,
    ):
        read_through(engine, tables)
    assert refused.value.__cause__ is refused.value.__context__ is None


def test_columns_that_lead_to_units_are_read_through_too(monkeypatch):
    visits = sf.Table(frame(["a"]), unit=sf.Unit("x"))
    seen = []
    ask = DuckDB.unprotected
    monkeypatch.setattr(
        DuckDB,
        "unprotected",
        lambda self, asked, query: seen.append(asked) or partial(ask, self)(asked, query),
    )
    with closing(DuckDB({"visits": visits})) as engine:
        read_through(engine, {"visits": visits})
    assert seen == [{"visits": {"x"}}]


CLIPPED = [
    sf.Integer(-100, 200, clip=(0, 50), missing="N"),
    sf.Integer(-100, 200, clip=120),
    sf.Real(-1, 100, step="0.25", clip=(0, "0.5")),
]


@given(st.sampled_from(CLIPPED), st.lists(VALUES, max_size=12))
def test_values_beyond_a_clip_are_those_whose_code_is(kind, values):
    low, high = kind.clip
    codes = [code_of(Column("x", kind), value) for value in values]
    present = [code for code in codes if code is not None]
    facts = inspected(frame(values, pa.string()), kind)
    assert facts.below_clip == sum(code < low for code in present)
    assert facts.above_clip == sum(code > high for code in present)
    assert facts.beyond_clip == facts.below_clip + facts.above_clip


@pytest.mark.parametrize("kind", [INTEGER, DAY, sf.Integer(0, 9, clip=sf.AUTO), sf.Text()], ids=str)
def test_without_a_clip_that_is_a_number_nothing_is_counted(kind):
    assert inspected(frame(["1", "7"]), kind).beyond_clip is None


def test_counts_that_ignore_the_clip_are_noticed(monkeypatch):
    honest = room._clip_counts
    bounds = sf.Integer(-100, 200, clip=(-100, 200))
    monkeypatch.setattr(room, "_clip_counts", lambda values, kind: honest(values, bounds))
    assert inspected(frame(["51"]), CLIPPED[0]).above_clip == 0


# --- steps -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "values", "rounded"),
    [
        (sf.Integer(0, 5), ["0.25", "1", "1.0", "4.99", "7.5", "-0.5", None, "x"], 2),
        (sf.Integer(0, 5), [0.5, 1.0, float("nan"), float("inf"), 4.5], 2),
        (sf.Integer(0, 5), [0, 1, 9], 0),
        (sf.Integer(0, 5, missing="0.5"), ["0.5", "1.5"], 1),
        (sf.Real(0, 5, step="0.25"), [0.25, 0.3, 5.0, 5.1], 1),
        (sf.Real(0, 5), [0.3, 0.7], None),
        (sf.Category("a"), ["a"], None),
        (sf.Date("2024-01-01", "2024-12-31"), ["2024-02-01"], None),
    ],
)
def test_values_between_two_steps_are_counted(kind, values, rounded):
    assert inspected(frame(values), kind).rounded == rounded


def test_decimals_between_two_steps_are_counted():
    values = [Decimal("0.4"), Decimal("1.0"), None]
    assert inspected(frame(values, pa.decimal128(5, 1)), sf.Integer(0, 5)).rounded == 1


@pytest.mark.parametrize(
    ("kind", "lists", "rounded"),
    [
        # one number suffices; beyond the bounds, and in lists that are not read, nothing is rounded
        (sf.Array(2, 0, 5), [[0.25, 1], [1, 2], [5.5, 1], [0.5], [0.5, None], None], 1),
        (sf.Array(2, 0, 5), [[0.5, float("nan")], [0.5, float("inf")]], 1),
        (sf.Array(2, 0, 5, step="0.25"), [[0.25, 0.3], [0.5, 5.0]], 1),
        (sf.Array(1, 0, 5, step="0.00000000001"), [[0.3]], None),
        (sf.Array(2, 0, 5), [[1, 2], [3, 9]], 0),
    ],
)
def test_lists_with_numbers_between_two_steps_are_counted(kind, lists, rounded):
    assert inspected(frame(lists), kind).rounded == rounded


def test_a_count_without_the_bounds_is_noticed(monkeypatch):
    monkeypatch.setattr(room, "ends", lambda kind: (sql.Constant(-99), sql.Constant(99)))
    assert inspected(frame(["0.25", "7.5"]), sf.Integer(0, 5)).rounded == 2
