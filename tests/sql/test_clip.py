# SPDX-License-Identifier: Apache-2.0
"""Clipped twins: which aggregates have one, what it reads, and what it adds up to."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.reference import Reference
from sfumato.errors import UnknownName
from sfumato.metadata.clip import Values
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.evaluate import evaluate
from sfumato.plan.question import Question
from sfumato.plan.scalar import Field
from sfumato.privacy.distance import Norm
from sfumato.query.pipeline import compile_plan
from sfumato.sql import clip
from sfumato.sql.clip import NO_TWINS, Clipping, between
from sfumato.sql.lower import question_of, tree
from tests.contracts.people import EXACTLY

INCOMES = [0, 5, 150, 200, 201, 900, 1000, None]
SEXES = ["F", "M", "F", "M", "F", "M", "F", "M"]
COLUMNS = {
    "income": sf.Integer(0, 1000, clip=(100, 200)),
    "debt": sf.Integer(-1000, 1000, clip=(-50, 50)),
    "age": sf.Integer(0, 120),
    "sex": sf.Category("F", "M"),
}
FRAME = pa.table(
    {
        "income": pa.array(INCOMES, pa.int64()),
        "debt": pa.array([-900, 10, 60, None, 0, -50, 50, 51], pa.int64()),
        "age": list(range(8)),
        "sex": SEXES,
    }
)


def declared(frame: object = FRAME) -> Dataset:
    return Dataset("d", {"people": sf.Table(frame, columns=COLUMNS)})


def asked(sql: str, values: Values | None = Values.TABLE) -> Question:
    return question_of(tree(f"SELECT {sql}"), declared(), clipping=Clipping(values))


def opened(folder: Path) -> sf.Session:
    return sf.connect(
        {"people": sf.Table(FRAME, columns=COLUMNS)},
        dataset="d", budget=sf.Budget(10**6), ledger=folder / "l.db",
    )  # fmt: skip


def names(question: Question) -> list[str]:
    return [item.name for item in question.output.items]


@pytest.mark.parametrize(
    ("select", "columns"),
    [
        ("AVG(income) AS m FROM people", ["m", "m_clipped"]),
        ("sex, SUM(income), COUNT(*) FROM people GROUP BY sex",
         ["sex", "SUM(income)", "COUNT(*)", "SUM(income)_clipped"]),
        ("STDDEV(debt) AS s, SUM(income) / COUNT(*) AS r FROM people",
         ["s", "r", "s_clipped", "r_clipped"]),
        ("AVG(CASE WHEN sex = 'F' THEN income END) AS f FROM people", ["f", "f_clipped"]),
        # nothing of a clip in them
        ("AVG(age) AS a, COUNT(income) AS n FROM people", ["a", "n"]),
        ("MEDIAN(income) AS q FROM people WHERE income > 300", ["q"]),
        ("AVG(CASE WHEN income > 300 THEN 1 ELSE 0 END) AS rich FROM people", ["rich"]),
        # no narrower for its clip
        ("SUM(GREATEST(income, 1000)) AS s FROM people", ["s"]),
        ("sex FROM people GROUP BY sex ORDER BY AVG(income)", None),
    ],
)  # fmt: skip
def test_what_a_clip_changes_has_a_column_of_its_own_behind_the_others(select, columns):
    if columns is None:
        question = asked("sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY AVG(income)")
        assert names(question) == ["sex", "n"]
        assert question.twins == ()
        return
    assert names(asked(select)) == columns
    plain = [name for name in columns if not name.endswith("_clipped")]
    assert names(asked(select, None)) == plain
    assert names(asked(select, sf.Clipped)) == plain


def test_a_question_without_twins_is_the_one_that_it_was():
    select = "sex, AVG(income) AS m FROM people GROUP BY sex"
    plain = question_of(tree(f"SELECT {select}"), declared(), clipping=NO_TWINS)
    assert plain == asked(select, None)
    twinned = asked(select)
    assert twinned.raw.aggregates[0] == plain.raw.aggregates[0]
    assert twinned.twins == ((1, 0),)


def test_a_test_reads_the_value_and_an_aggregate_the_clipped_one(tmp_path):
    sql = (
        "SELECT SUM(income) AS s, SUM(CASE WHEN income > 201 THEN income END) AS rich, "
        "SUM(2 * income - age) AS t, SUM(COALESCE(income, 0)) AS c FROM people"
    )
    with opened(tmp_path) as session:
        both = session.query(sql, epsilon=6 * EXACTLY).to_dicts()[0]
        alone = session.query(sql, epsilon=6 * EXACTLY, values=sf.Clipped).to_dicts()[0]
    incomes = INCOMES[:-1]
    kept = [min(max(income, 100), 200) for income in incomes]
    assert (both["s"], both["rich"]) == (sum(incomes), 1900)
    assert both["s_clipped"] == alone["s"] == sum(kept)
    assert both["rich_clipped"] == alone["rich"] == 400
    assert both["t_clipped"] == alone["t"] == 2 * sum(kept) - sum(range(7))
    # the clip is of the column: what replaces a missing value is not clipped
    assert both["c_clipped"] == alone["c"] == sum(kept)


def test_clipped_values_alone_are_those_of_order_by_and_having_too(tmp_path):
    sql = "SELECT sex, AVG(income) AS m FROM people GROUP BY sex HAVING AVG(income) > 190"
    with opened(tmp_path) as session:
        assert session.query(sql, epsilon=6 * EXACTLY).to_dicts()
        assert session.query(sql, epsilon=6 * EXACTLY, values=sf.Clipped).rows == []


def test_order_by_knows_the_column_of_the_clipped_values_by_its_name():
    grouped = "sex, SUM(income) AS m FROM people GROUP BY sex ORDER BY"
    assert asked(f"{grouped} M_clipped DESC").output == asked(f"{grouped} 3 DESC").output
    assert asked(f"{grouped} m_clipped").output != asked(f"{grouped} m").output
    for values in (None, sf.Clipped):
        with pytest.raises(UnknownName):
            asked(f"{grouped} m_clipped", values)
    for elsewhere in ("people.m_clipped", "m_clipped + 1"):
        with pytest.raises(UnknownName):
            asked(f"{grouped} {elsewhere}")


def test_a_clip_inside_the_possible_range_narrows_the_sensitivity():
    question = asked("SUM(debt) AS s FROM people")
    bounded = compile_plan(question.raw, declared(), Norm.L1)
    assert [int(part.distance.value) for part in bounded.parts] == [1000, 50]


@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(-5, 1200)), st.one_of(st.none(), st.integers(-9, 9))
        ),
        max_size=9,
    )
)
def test_engines_agree_on_clipped_integers(rows):
    """The clipped sum of both engines is that of Python."""
    columns = {"v": sf.Integer(0, 1000, clip=(100, 200)), "w": sf.Real(-8, 8, step=1, clip=(-2, 3))}
    frame = pa.table(
        {
            "v": pa.array([v for v, _ in rows], pa.int64()),
            "w": pa.array([w for _, w in rows], pa.int64()),
        }
    )
    dataset = Dataset("d", {"t": sf.Table(frame, columns=columns)})
    sql = "SELECT SUM(v) AS a, SUM(w) AS b FROM t"
    raw = question_of(tree(sql), dataset, clipping=Clipping(sf.Clipped)).raw
    bounded = compile_plan(raw, dataset, Norm.L1)
    clipped = [
        [min(max(v, 100), 200) for v, _ in rows if v is not None],
        [min(max(w, -2), 3) for _, w in rows if w is not None],
    ]
    expected = [sum(part) * bounded.refinement for part in clipped]
    with closing(DuckDB(dataset.tables)) as engine:
        assert sums(engine.run(bounded, "key")) == expected
    assert sums(Reference({"t": frame.to_pylist()}).run(bounded, "key")) == expected


def sums(exact: object) -> list[int]:
    """The only integer of each part; 0 where there are no rows."""
    return [part[()][0] if part else 0 for part in exact]


def test_a_clip_that_moves_tests_too_is_noticed(tmp_path, monkeypatch):
    """The mutant clips wherever the column is read."""
    sql = "SELECT SUM(CASE WHEN income > 201 THEN income END) AS rich FROM people"

    def everywhere(expression: object, clipping: Clipping) -> object:
        if isinstance(expression, Field):
            ends = clipping.ends(expression.column)
            return between(expression, *ends) if ends else expression
        if hasattr(expression, "branches"):
            branches = tuple(
                (replace(test, left=everywhere(test.left, clipping)), everywhere(result, clipping))
                for test, result in expression.branches
            )
            return replace(expression, branches=branches)
        return expression

    monkeypatch.setattr(
        clip.Clipping, "_expression", lambda clipping, expression: everywhere(expression, clipping)
    )
    with opened(tmp_path) as session:
        alone = session.query(sql, epsilon=6 * EXACTLY, values=sf.Clipped).to_dicts()[0]
    assert alone["rich"] != 400


@given(st.integers(-20, 20), st.integers(-20, 19), st.integers(1, 20))
def test_between_is_the_nearest_value_in_the_range(value, low, width):
    column = Column("x", sf.Integer(-20, 40))
    moved = evaluate(between(Field(column), low, low + width), lambda leaf: value)
    assert moved == sorted((low, value, low + width))[1]
    assert evaluate(between(Field(column), low, low + width), lambda leaf: None) is None


def test_clipped_values_of_which_there_are_none_are_said():
    nothing = "nothing here is clipped"
    assert nothing in asked("AVG(age) AS a FROM people", sf.Clipped).notes[0]
    assert nothing in asked("SUM(GREATEST(income, 1000)) AS s FROM people", sf.Clipped).notes[0]
    assert asked("AVG(income) AS a FROM people", sf.Clipped).notes == ()
    assert asked("AVG(age) AS a FROM people").notes == ()
