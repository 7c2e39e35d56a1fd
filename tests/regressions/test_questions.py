# SPDX-License-Identifier: Apache-2.0
"""Questions that were once misread, charged for nothing, or answered with another meaning."""

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import SqlSyntaxError, UnsupportedSql, WrongUse
from sfumato.metadata import Dataset
from sfumato.plan.scalar import Key, Member
from sfumato.privacy import Norm
from sfumato.query.explain import bias
from sfumato.query.pipeline import compile_plan
from sfumato.sql import understand

PEOPLE = sf.Table(
    pa.table({"sex": ["F", "M"], "age": [30, 40], "height": [1.5, 2.0]}),
    columns={
        "sex": sf.Category("F", "M"),
        "age": sf.Integer(0, 99),
        "height": sf.Real(0, 3, step="0.5"),
    },
    unit=sf.Unit("person", max_rows=1),
)
DATASET = Dataset("d", {"people": PEOPLE})


def test_having_on_an_alias_of_a_key_compares_its_values():
    question = understand(
        "SELECT sex AS s, COUNT(*) FROM people GROUP BY sex HAVING s = 'M'", DATASET
    )
    assert question.output.having == Member(Key(0), (1,))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING COUNT(*) < 'abc'",
        "SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING COUNT(*) BETWEEN sex AND 10",
        "SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING COUNT(*) = TRUE",
        "SELECT COUNT(*) AS sex, sex FROM people GROUP BY sex",
        "SELECT age AS sex, COUNT(*) FROM people GROUP BY sex",
        "SELECT SUM(age) FROM people AS p(age, sex)",
        "SELECT COUNT(*) FROM people GROUP BY TRUE",
        "SELECT COUNT(*) FROM people ORDER BY TRUE",
        "SELECT COUNT(*)" + "+1" * 500 + " FROM people",
        "SELECT " + "- " * 500 + "COUNT(*) FROM people",
        "SELECT COUNT(*) FROM people WHERE age = 1e500",
        "SELECT COUNT(*) FROM people WHERE sex = '\ud800'",
    ],
)
def test_it_is_refused_before_anything_is_charged(sql):
    with pytest.raises(UnsupportedSql):
        understand(sql, DATASET)


def test_half_a_character_as_a_parameter_is_refused():
    with pytest.raises(WrongUse, match="half of a character"):
        understand("SELECT COUNT(*) FROM people WHERE sex = $1", DATASET, parameters=["\ud800"])


def test_the_unit_of_another_table_is_not_ours():
    with pytest.raises(sf.SfumatoError, match="other"):
        understand("SELECT COUNT(DISTINCT other.person) FROM people", DATASET)


def test_what_the_parser_stumbles_over_is_a_syntax_error():
    with pytest.raises(SqlSyntaxError):
        understand("-> SELECT COUNT(*) FROM people", DATASET)


def test_an_alias_may_be_the_name_of_a_column_that_is_no_key():
    question = understand(
        "SELECT sex, AVG(age) AS age FROM people GROUP BY sex HAVING age > 30 ORDER BY age", DATASET
    )
    assert len(question.raw.aggregates) == 1


def test_every_column_of_an_answer_has_a_name_of_its_own():
    question = understand(
        "SELECT COUNT(*) n, SUM(age) n, AVG(age) n_2, COUNT(age) n FROM people", DATASET
    )
    names = [item.name for item in question.output.items]
    assert len(set(names)) == 4
    assert {"n", "n_2"} < set(names)


def test_the_bias_of_a_clipped_column_in_where_is_told():
    plan = compile_plan(
        understand("SELECT COUNT(*) FROM people WHERE age = 90", DATASET).raw, DATASET, Norm.L1
    )
    assert any("WHERE: age" in line for line in bias(plan))


def test_an_answer_with_a_text_or_a_huge_count_still_becomes_a_table(tmp_path):
    wide = sf.Table(pa.table({"v": [2**50]}), columns={"v": sf.Integer(0, 2**50)})
    with sf.connect(
        {"t": wide}, dataset="d", budget=sf.Budget(1), ledger=tmp_path / "l.db"
    ) as session:
        answer = session.query(
            "SELECT SUM(v) AS total, 'x' AS label, TRUE AS yes FROM t", epsilon="1e-9"
        )
    assert answer.to_arrow().column("label").to_pylist() == ["x"]
    assert answer.to_arrow().column("yes").to_pylist() == [True]


def test_a_released_number_beyond_every_float_is_still_an_answer(tmp_path):
    table = sf.Table(pa.table({"v": [1]}), columns={"v": sf.Integer(0, 9)})
    with sf.connect(
        {"t": table}, dataset="d", budget=sf.Budget(1), ledger=tmp_path / "l.db"
    ) as session:
        answer = session.query(
            "SELECT (COUNT(*) + 10000) * 1e300 * 1e300 AS huge, SUM(v) * 1e17 AS wide FROM t",
            epsilon="0.5",
        )
    assert answer.to_arrow().column("huge").to_pylist()[0] > 1e308


def test_the_error_of_a_mean_with_a_pilot_is_met(tmp_path):
    table = sf.Table(pa.table({"v": [3, 5] * 5000}), columns={"v": sf.Integer(0, 99)})
    with sf.connect(
        {"t": table}, dataset="d", budget=sf.Budget(10), ledger=tmp_path / "l.db"
    ) as session:
        session.query("SELECT AVG(v) AS m FROM t", epsilon=1)
        loose = session.query("SELECT AVG(v) AS m FROM t", error="0.5", max_epsilon=5)
        assert loose.cost.epsilon == "0", "the pilot is exact enough"
        answer = session.query("SELECT AVG(v) AS m FROM t", error="0.01", max_epsilon=5)
    assert 0.004 < answer.error()[0]["m"]["half_width"] < 0.011


def test_a_comment_after_the_semicolon_is_no_second_statement():
    assert understand("SELECT COUNT(*) FROM people; -- how many", DATASET).table == "people"


def test_an_answer_without_rows_keeps_its_columns(tmp_path):
    table = sf.Table(pa.table({"v": [1]}), columns={"v": sf.Integer(0, 9)})
    with sf.connect(
        {"t": table}, dataset="d", budget=sf.Budget(1), ledger=tmp_path / "l.db"
    ) as session:
        answer = session.query(
            "SELECT COUNT(*) AS n FROM t HAVING COUNT(*) > 1000000", epsilon="0.5"
        )
    assert "95% interval" in repr(answer)


def test_the_error_of_a_mean_for_a_size_that_units_do_not_reach_says_so(tmp_path):
    table = sf.Table(
        pa.table({"u": [1, 1, 2], "v": [1, 2, 3]}),
        unit=sf.Unit("u", max_rows=1),
        columns={"v": sf.Integer(0, 9)},
        size=3000,
    )
    session = sf.connect({"t": table}, dataset="d", budget=sf.Budget(1), ledger=tmp_path / "l.db")
    with session:
        answer = session.query("SELECT AVG(v) AS m FROM t", error="0.5", max_epsilon=1)
    assert "the error holds as far as none of the declared 3,000 values is missing" in repr(answer)
    # of 3 rows the interval is the whole range
    assert (answer.error()[0]["m"]["low"], answer.error()[0]["m"]["high"]) == (0, 9)


def test_a_wrong_prefix_in_having_is_refused():
    with pytest.raises(sf.SfumatoError, match="foo"):
        understand("SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING foo.sex = 'F'", DATASET)


def test_a_long_chain_of_and_is_not_deep():
    tests = " AND ".join(f"age <> {place}" for place in range(400))
    assert understand(f"SELECT COUNT(*) FROM people WHERE {tests}", DATASET).table == "people"
