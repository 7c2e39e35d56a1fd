# SPDX-License-Identifier: Apache-2.0
"""A preview is a function of the declarations: free, and the same on any data."""

from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidNumber, SfumatoError
from sfumato.query.preview import Preview
from tests.contracts.people import FRAME, session

QUESTIONS = (
    "SELECT COUNT(*) AS n FROM people",
    "SELECT sex, smoker, COUNT(*) AS n, AVG(age) AS m FROM people GROUP BY sex, smoker ORDER BY n DESC LIMIT 2",
    "SELECT SUM(age) / COUNT(*) AS r, SUM(hours) AS s FROM people WHERE job = 'job 1' AND born < DATE '1970-01-01'",
)
OTHERS = {
    "one row less": FRAME.slice(1),
    "no row": FRAME.slice(0, 0),
    "all NULL": pa.table(
        {name: pa.nulls(7, FRAME.schema.field(name).type) for name in FRAME.column_names}
    ),
    "ten times the rows": pa.concat_tables([FRAME] * 10),
}


def everything(preview: Preview) -> tuple[object, ...]:
    """All that a preview says."""
    shown = (preview.cost, preview.error(), preview.error("0.5"), preview.explain(), repr(preview))
    return (*shown, preview.statement.replace("'", '"'))


@pytest.mark.parametrize("other", OTHERS)
def test_a_preview_is_identical_on_other_data(tmp_path: Path, other: str) -> None:
    (tmp_path / "other").mkdir()
    with session(tmp_path) as one, session(tmp_path / "other", OTHERS[other]) as two:
        for sql in QUESTIONS:
            for asked in ({"epsilon": 1}, {"rho": "0.1"}):
                assert everything(one.preview(sql, **asked)) == everything(
                    two.preview(sql, **asked)
                )


def test_a_preview_touches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with session(tmp_path) as opened:
        monkeypatch.setattr(type(opened._engine), "_run", None)
        before, account = opened.verify(), repr(opened.budget)
        for sql in QUESTIONS:
            opened.preview(sql, epsilon=1)
        assert opened.verify() == before
        assert repr(opened.budget) == account


@pytest.mark.parametrize("asked", [{"epsilon": "0.5"}, {"rho": "0.01"}])
@pytest.mark.parametrize("confidence", [0.5, 0.95, "0.999"])
def test_the_error_of_counts_and_sums_is_the_one_of_the_answer(
    tmp_path: Path, asked: dict[str, str], confidence: object
) -> None:
    sql = "SELECT COUNT(*) AS n, SUM(age) AS s, SUM(hours) AS h FROM people"
    with session(tmp_path) as opened:
        preview, answer = opened.preview(sql, **asked), opened.query(sql, **asked)
    (told,) = answer.error(confidence)
    for line in preview.error(confidence):
        assert line["half_width"] == told[line["column"]]["half_width"]


def test_the_error_of_a_mean_is_by_group_size_and_falls_with_it(tmp_path: Path) -> None:
    with session(tmp_path, size=777) as opened:
        lines = opened.preview("SELECT AVG(age) AS m FROM people", epsilon="0.5").error()
    assert [line["rows"] for line in lines] == [100, 777, 1000, 10_000, 100_000]
    widths = [line["half_width"] for line in lines]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] <= 99


def test_the_error_of_a_mean_is_reached_at_its_size(tmp_path: Path) -> None:
    frame = pa.concat_tables([FRAME] * 25)
    sql = "SELECT AVG(age) AS m FROM people"
    with session(tmp_path, frame) as opened:
        expected = {
            line["rows"]: line["half_width"] for line in opened.preview(sql, epsilon=5).error()
        }[1000]
        (told,) = opened.query(sql, epsilon=5).error()
    # 29.5 in [0, 99]: a smaller part of the noise of 'numerator alone', never above it but for the
    # noisy size
    assert expected / 3 < told["m"]["half_width"] < expected * 1.1


def test_an_expression_depends_on_the_answers(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        preview = opened.preview("SELECT SUM(age) / COUNT(*) AS r FROM people", epsilon=1)
    assert preview.error() == [{"column": "r", "rows": None, "half_width": None}]
    assert "depends on the answers" in repr(preview)


def test_the_statement_is_the_bounded_sql_without_its_sampling_key(tmp_path: Path) -> None:
    unit = sf.Unit("person", max_rows=1, max_groups=1)
    with session(tmp_path, unit=unit) as opened:
        preview = opened.preview(
            "SELECT sex, COUNT(DISTINCT person) AS n FROM people GROUP BY sex", epsilon=1
        )
    assert "<sampling key>" in preview.statement
    assert "unnest(min(p, 1)) AS p FROM placed GROUP BY unit" in preview.statement


def test_the_repr_says_that_it_was_free(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        shown = repr(opened.preview(QUESTIONS[0], epsilon="0.5"))
    assert shown.endswith("would cost epsilon = 0.5; nothing was charged")


@pytest.mark.parametrize("confidence", [0, 1, -1, 2, "nan", "x"])
def test_a_confidence_outside_zero_to_one_is_refused(tmp_path: Path, confidence: object) -> None:
    with session(tmp_path) as opened, pytest.raises(InvalidNumber, match="confidence"):
        opened.preview(QUESTIONS[0], epsilon=1).error(confidence)


def test_a_refused_question_has_no_preview(tmp_path: Path) -> None:
    with session(tmp_path) as opened, pytest.raises(SfumatoError):
        opened.preview("SELECT * FROM people", epsilon=1)


@pytest.mark.parametrize(
    "sql",
    [
        *QUESTIONS,
        "SELECT sex, COUNT(*) AS n, 2 * AVG(age) AS m, MEDIAN(hours) AS h FROM people GROUP BY sex",
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex)",
        "SELECT COUNT(*) AS n, COUNT(*) / 2 AS half FROM people",
    ],
)
def test_the_columns_are_those_of_the_answer(tmp_path: Path, sql: str) -> None:
    with session(tmp_path) as opened:
        forms = opened.preview(sql, epsilon="0.5").column_forms
        assert forms == opened.query(sql, epsilon="0.5").columns
        assert [tuple(form.values())[:2] for form in forms] == [
            *opened.preview(sql, epsilon="0.5").columns
        ]
