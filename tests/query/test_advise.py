# SPDX-License-Identifier: Apache-2.0
"""Advice: free, from declarations; each line is what the question, so asked, would be previewed."""

from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import Refused, UnsupportedSql
from sfumato.query.advise import Advice, Option
from sfumato.query.session import Session

INCOMES = [*range(1, 991)] * 4 + [50_000] * 40
FRAME = pa.table({"income": INCOMES, "sex": ["F", "M"] * 2000, "area": ["a", "b", "c", "d"] * 1000})
BY_BOTH = "SELECT area, sex, AVG(income) AS m, COUNT(*) AS n FROM people GROUP BY area, sex"


def opened(folder: Path, **clip: object) -> Session:
    """Incomes up to 2^20, by sex and four areas; 4,000 is the declared size."""
    columns = {
        "income": sf.Integer(0, 2**20, **clip),
        "sex": sf.Category("F", "M"),
        "area": sf.Category("a", "b", "c", "d"),
    }
    table = sf.Table(FRAME, columns=columns, size=4000)
    return sf.connect({"people": table}, dataset="d", budget=sf.Budget(100), ledger=folder / "l.db")


def of(advice: Advice, about: str) -> dict[str, Option]:
    """The options about something, by what they are."""
    return {option.what: option for option in advice.options if option.about == about}


def previewed(session: Session, sql: str, rows: int, column: str = "m", **how: object) -> float:
    """The half-width that a preview says for a group of so many rows."""
    (found,) = [
        line["half_width"]
        for line in session.preview(sql, **how).error()
        if line["column"] == column and line["rows"] in (None, rows)
    ]
    return float(str(found))


def test_advice_is_free_and_begins_with_the_question_as_asked(tmp_path):
    with opened(tmp_path) as session:
        advice = session.advise("SELECT AVG(income) AS m FROM people", epsilon=1)
        assert session.budget.left == 100
        first = advice.options[0]
        assert (first.about, first.rows) == ("as asked", 4000)
        assert first.half_width == previewed(
            session, "SELECT AVG(income) AS m FROM people", 4000, epsilon=1
        )


def test_a_clip_is_previewed_as_the_clipped_statistic_alone(tmp_path):
    sql = "SELECT SUM(income) AS m FROM people"
    with opened(tmp_path) as session:
        clips = of(session.advise(sql, epsilon="0.5"), "clip")
    (tmp_path / "declared").mkdir()
    assert "income in [0, 65536]" in clips
    with opened(tmp_path / "declared", clip=65_536) as session:
        alone = previewed(session, sql, 4000, epsilon="0.5", values=sf.Clipped)
    assert clips["income in [0, 65536]"].half_width == alone
    widths = [option.half_width for option in clips.values()]
    assert widths == sorted(widths, reverse=True)


def test_a_cost_is_previewed_as_that_cost(tmp_path):
    with opened(tmp_path) as session:
        costs = of(session.advise(BY_BOTH, rho="0.02", rows=100), "cost")
        assert list(costs) == ["rho = 0.005", "rho = 0.01", "rho = 0.04", "rho = 0.08"]
        half = previewed(session, BY_BOTH, 100, rho="0.08")
    assert costs["rho = 0.08"].half_width == half


def test_a_coarser_grouping_has_more_rows_in_each_group(tmp_path):
    with opened(tmp_path) as session:
        advice = session.advise(BY_BOTH, epsilon=1)
        groups = of(advice, "grouping")
    assert advice.options[0].rows == 500
    assert (groups["not by area"].rows, groups["not by sex"].rows) == (2000, 1000)
    least = groups["not by area"].half_width
    assert least is not None and advice.options[0].half_width is not None
    assert 3.5 < advice.options[0].half_width / least < 4.5


def test_what_lies_beyond_is_charged_once_and_shared_with_auto(tmp_path):
    with opened(tmp_path, clip=sf.AUTO) as session:
        advice = session.advise("SELECT AVG(income) AS m FROM people", epsilon=1, beyond=2)
        assert session.budget.left == 98
        again = session.advise("SELECT SUM(income) AS m FROM people", epsilon=1, beyond=1)
        assert session.budget.left == 98
        # the clip of this question is chosen from the same answer: its own nine tenths are paid
        session.query("SELECT AVG(income) AS m FROM people", epsilon=1)
        assert session.budget.left == Fraction("97.1")
    beyond = {what: option.beyond for what, option in of(advice, "clip").items()}
    assert beyond == {what: option.beyond for what, option in of(again, "clip").items()}
    count, half = (
        float(part.replace(",", "")) for part in beyond["income in [0, 32768]"].split(" +- ")
    )
    # ten bins of scale 1/2: false but for a chance below 1e-9 beyond 200
    assert abs(count - 40) < 200 and half < 200


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("SELECT MEDIAN(income) AS m FROM people", "depends"),
        ("SELECT COUNT(*) AS m FROM people", "+- "),
        ("SELECT SUM(income) / COUNT(*) AS r, COUNT(*) AS n FROM people", "+- "),
    ],
)
def test_other_aggregates_have_advice_on_what_there_is(tmp_path, sql, what):
    with opened(tmp_path) as session:
        advice = session.advise(sql, epsilon=1)
    assert what in repr(advice)
    assert "<svg" in advice.plot().svg
    assert len(advice.to_json()["options"]) == len(advice.options)


def test_what_cannot_be_advised_on_is_refused(tmp_path):
    with opened(tmp_path) as session:
        with pytest.raises(UnsupportedSql):
            session.advise("SELECT SUM(income) / COUNT(*) AS r FROM people", epsilon=1)
        with pytest.raises(Refused):
            session.advise("SELECT income FROM people", epsilon=1)
        with pytest.raises(Refused):
            session.advise("SELECT AVG(income) FROM people", epsilon=1, beyond=1000)
        assert session.budget.left == 100
