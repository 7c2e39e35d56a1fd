# SPDX-License-Identifier: Apache-2.0
"""What SQL over private answers would give and cost."""

from tests.contracts.people import session

INNER = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
TEXT = f"SELECT sex, n * 1.0 / SUM(n) OVER () AS share FROM ({INNER}) UNION ALL SELECT 'x', AVG(age) FROM people"


def test_columns_and_cost_are_told_free(tmp_path):
    with session(tmp_path) as own:
        before = own.budget.to_json()
        preview = own.preview(TEXT, epsilon=1)
        assert own.budget.to_json() == before
        answer = own.query(TEXT, epsilon=1)
    assert preview.columns == (("sex", "text"), ("share", "real"))
    assert [(column["name"], column["type"]) for column in answer.columns] == list(preview.columns)
    assert preview.cost.epsilon == answer.cost.epsilon == "1"
    assert preview.error()[0]["answer"] == 0
    assert len(preview.inner) == 2
    assert "columns: sex (text), share (real)" in repr(preview)
    assert "COUNT(*)" in preview.explain() and "answer 0" in preview.statement
    assert "<table" in preview._repr_html_()


def test_the_columns_of_one_question_are_told_too(tmp_path):
    with session(tmp_path) as own:
        preview = own.preview(INNER, epsilon=1)
        answer = own.query(INNER, epsilon=1)
    assert preview.columns == tuple((c["name"], c["type"]) for c in answer.columns)
