# SPDX-License-Identifier: Apache-2.0
"""An answer says everything from its bytes: frames, errors, words, pictures."""

import csv
import datetime
import io
import json
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidNumber, WrongUse
from sfumato.query.answer import Answer
from sfumato.query.estimate import Released
from sfumato.show.render import UNTOLD
from tests.contracts.people import EXACTLY, FRAME, columns, session

EVERY = (
    "SELECT sex, smoker, COUNT(*) AS n, SUM(hours) AS h, AVG(age) AS m, SUM(age) / COUNT(*) AS r FROM people "
    "GROUP BY sex, smoker ORDER BY n DESC"
)
LEVELS = ["0.01", "0.5", "0.8", 0.95, "0.99", "0.999999", 1 - Fraction(1, 10**12)]


def asked(folder: Path, sql: str = EVERY, **price: object) -> Answer:
    """An answer of a fresh session."""
    with session(folder) as opened:
        return opened.query(sql, **(price or {"epsilon": 20}))


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    return asked(tmp_path_factory.mktemp("answer"))


def test_a_receipt_names_a_charge_that_paid_before_once(answer: Answer) -> None:
    charge = answer.charge_id
    item = {"mechanism": "read from an earlier answer", "parameter": f"charge {charge[:12]}"}
    cost = {"epsilon": "0", "rho": "0", "delta": "0", "items": [item]}
    paid = Answer(None, form={**answer.form, "cost": cost})
    assert paid.receipt() == f"cost nothing now, paid before by charge {charge[:12]}"
    other = Answer(None, form={**answer.form, "cost": cost, "charge_id": "f" * 32})
    assert other.receipt() == f"{paid.receipt()}, charge {'f' * 12}"


def test_it_is_rebuilt_from_its_bytes_alone(answer: Answer) -> None:
    again = Answer(bytes(answer.bytes))
    assert (again.rows, again.error(), again.explain(), repr(again)) == (
        answer.rows, answer.error(), answer.explain(), repr(answer),
    )  # fmt: skip


def test_every_form_holds_the_same_cells(answer: Answer) -> None:
    names = ["sex", "smoker", "n", "h", "m", "r"]
    assert answer.to_dicts() == [dict(zip(names, row, strict=True)) for row in answer.told]
    table = answer.to_arrow()
    assert isinstance(table, pa.Table)
    assert table.schema.names == names
    assert [str(kind) for kind in table.schema.types] == [
        "string",
        "bool",
        "int64",
        "double",
        "double",
        "double",
    ]
    assert table.to_pylist() == answer.to_dicts()
    assert isinstance(answer.to_pandas(), pd.DataFrame)
    assert list(answer.to_pandas()["n"]) == [row[2] for row in answer.rows]
    assert isinstance(answer.to_polars(), pl.DataFrame)
    assert answer.to_polars().rows() == [tuple(row) for row in answer.told]
    read = pa.ipc.open_stream(answer.to_arrow_bytes()).read_all()
    assert read.equals(table)


def test_dates_and_integers_are_keys_of_their_own_types(tmp_path: Path) -> None:
    answer = asked(
        tmp_path,
        "SELECT born, COUNT(*) AS n FROM people WHERE age < 21 GROUP BY born LIMIT 2",
        epsilon=1,
    )
    assert answer.to_dicts()[0]["born"] == datetime.date(1960, 1, 1)
    assert answer.to_arrow().schema.field("born").type == pa.date32()
    assert answer.rows[0][0] == "1960-01-01"


def test_the_error_at_95_is_the_stored_one(answer: Answer) -> None:
    stored = json.loads(answer.bytes)["errors"]
    for default in (answer.error(), answer.error(0.95), answer.error("0.95")):
        found = [[row[name] for name in ("n", "h", "m", "r")] for row in default]
        assert found == [line[2:] for line in stored]


def test_more_confidence_never_gives_a_narrower_interval(answer: Answer) -> None:
    levels = [answer.error(level) for level in LEVELS]
    for narrow, wide in pairwise(levels):
        for one, other in zip(narrow, wide, strict=True):
            for name in ("n", "h", "m", "r"):
                if other[name]["low"] is None:
                    continue
                assert other[name]["low"] <= one[name]["low"] + 1e-9
                assert other[name]["high"] >= one[name]["high"] - 1e-9
                assert other[name]["half_width"] >= one[name]["half_width"] - 1e-9


def test_the_half_width_reaches_both_ends_and_the_estimate_is_inside(answer: Answer) -> None:
    names = [str(column["name"]) for column in answer.columns]
    for values, errors in zip(answer.rows, answer.error(), strict=True):
        row = dict(zip(names, values, strict=True))
        for name in ("n", "h", "m", "r"):
            error = errors[name]
            if error["low"] is not None:
                assert error["low"] <= row[name] <= error["high"]
                assert (
                    error["half_width"]
                    >= max(row[name] - error["low"], error["high"] - row[name]) - 1e-12
                )
        assert (errors["sex"], errors["smoker"]) == (row["sex"], row["smoker"])


@pytest.mark.parametrize(
    "level", [0, 1, 1.5, -0.1, "nan", "x", True, 1 - Fraction(1, 10**13)], ids=repr
)
def test_a_confidence_that_is_none_is_refused(answer: Answer, level: object) -> None:
    with pytest.raises(InvalidNumber, match="confidence"):
        answer.error(level)


def test_a_ratio_whose_divisor_may_be_zero_is_unbounded(tmp_path: Path) -> None:
    answer = asked(
        tmp_path, "SELECT SUM(age) / COUNT(*) AS r FROM people WHERE age > 98", epsilon="0.01"
    )
    # the count is zero, so only noise beyond this confidence could keep zero out of its interval
    assert answer.error("0.99999999999") == [{"r": {"low": None, "high": None, "half_width": None}}]


def test_explain_says_whom_what_and_how_much(answer: Answer) -> None:
    text = answer.explain()
    assert text.splitlines()[0] == EVERY
    for piece in (
        "Protected: each row is one unit",
        "COUNT(*): discrete Laplace, scale",
        "Bounded: age was clipped to its declared [0, 99]",
        "Bias: SUM(hours): values beyond",
        f"Charge: {answer.charge_id}.",
        f"Cost: {answer.cost}.",
    ):
        assert piece in text


def test_the_json_of_the_shell_holds_what_the_design_names(answer: Answer) -> None:
    form = answer.to_json()
    for name in ("charge_id", "dataset", "statement", "cost", "columns", "rows", "errors", "notes"):
        assert name in form
    assert "released" not in form
    assert json.loads(json.dumps(form))["rows"] == answer.rows
    assert form["columns"][0] == {"name": "sex", "type": "text"}


def test_the_repr_has_every_row_and_the_cost(answer: Answer) -> None:
    shown = repr(answer)
    assert len([line for line in shown.splitlines() if "male" in line]) == 6
    assert f"cost epsilon = 20, charge {answer.charge_id[:12]}" in shown


def test_html_is_escaped(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>&"
    answer = asked(tmp_path, f'SELECT COUNT(*) AS "{evil}" FROM people', epsilon=1)
    assert answer.columns[0]["name"] == evil
    assert "<script" not in answer._repr_html_()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;" in answer._repr_html_()
    assert "<script" not in answer.plot().svg


def test_the_html_lists_notes_and_bias(answer: Answer) -> None:
    assert answer._repr_html_().count("<li>") == len(answer.notes) + len(answer.bias)
    assert "<table" in answer._repr_html_()


@pytest.mark.parametrize("column", [None, "n", "h", "m", "r"])
def test_a_plot_shows_the_cells_of_the_answer_and_nothing_else(
    answer: Answer, column: str | None
) -> None:
    svg = answer.plot(column).svg
    root = ElementTree.fromstring(svg)
    titles = [each.text for each in root.iter("{http://www.w3.org/2000/svg}title")]
    name = column or "n"
    expected = [
        f"{row['sex']} {'NULL' if row['smoker'] is None else row['smoker']}: {float(row[name] or 0):,.6g}"
        for row in answer.to_dicts()
        if name != "m" or row["m"] is not None
    ]
    assert titles == expected


# --- cells of which nothing can be told ------------------------------------------------------


def untold(answer: Answer) -> list[int]:
    """The rows whose mean is cut at an end of [0, 99] with an interval beyond the middle, or has
    the whole range as its interval.
    """
    place = [column["name"] for column in answer.columns].index("m")
    rows = []
    for row, error in enumerate(answer.error()):
        value, low, high = answer.rows[row][place], error["m"]["low"], error["m"]["high"]
        at_an_end = (value == 0 and high > 49.5) or (value == 99 and low < 49.5)
        if (low, high) == (0, 99) or at_an_end:
            rows.append(row)
    return rows


def marked(answer: Answer) -> dict[str, int]:
    """How often each form says that the mean cannot be told."""
    return {
        "table": repr(answer).count(UNTOLD) - sum(UNTOLD in note for note in answer.notes),
        "html": answer._repr_html_().count(f"<td>{UNTOLD}</td>"),
        "plot": answer.plot("m").svg.count(f">{UNTOLD}<"),
        "dicts": sum(row["m"] is None for row in answer.to_dicts()),
        "frame": int(answer.to_pandas()["m"].isna().sum()),
        "arrow": answer.to_arrow()["m"].null_count,
        "csv": sum(row["m"] == "" for row in csv.DictReader(io.StringIO(answer.to_csv()))),
        "errors": sum("untold" in row["m"] for row in answer.error()),
    }


def test_a_cell_whose_interval_is_the_whole_range_is_marked_in_every_form(answer: Answer) -> None:
    assert set(marked(answer).values()) == {len(untold(answer))}
    assert 0 < len(untold(answer)) < len(answer.rows)
    assert any(
        note.startswith(f"m: in {len(untold(answer))} rows it cannot be told")
        for note in answer.notes
    )


def test_a_mean_of_nobody_that_is_shown_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Released, "unknown", lambda self, miss, statistic: None)
    monkeypatch.setattr(Released, "is_at_an_end", lambda *_: False)
    found = asked(tmp_path)
    assert untold(found) and set(marked(found).values()) == {0}


def test_a_plot_of_what_was_not_released_is_refused(answer: Answer) -> None:
    for column in ("sex", "nothing"):
        with pytest.raises(WrongUse, match="No released column"):
            answer.plot(column)


def test_a_plot_of_words_is_refused_and_shows_the_first_number(tmp_path: Path) -> None:
    words = "CASE WHEN COUNT(*) > 3 THEN 'many' ELSE 'few' END AS size"
    answer = asked(tmp_path, f"SELECT {words}, COUNT(*) AS n FROM people", epsilon=1)
    assert answer.plot().svg == answer.plot("n").svg
    with pytest.raises(WrongUse, match="No released column 'size' to plot"):
        answer.plot("size")


def test_a_plot_of_one_number_has_its_statement_as_title(tmp_path: Path) -> None:
    answer = asked(tmp_path, "SELECT COUNT(*) AS n FROM people", epsilon=1)
    assert (
        ElementTree.fromstring(answer.plot().svg).get("aria-label")
        == "SELECT COUNT(*) AS n FROM people"
    )


def test_an_answer_without_rows_still_shows_itself(tmp_path: Path) -> None:
    answer = asked(
        tmp_path,
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING COUNT(*) > 1000",
        epsilon=EXACTLY,
    )
    assert (answer.rows, answer.error(), answer.to_arrow().num_rows) == ([], [], 0)
    assert answer.to_pandas().shape == (0, 2)
    assert "sex" in repr(answer)
    with pytest.raises(WrongUse, match="there are no rows"):
        answer.plot()


@pytest.mark.parametrize(
    ("test", "kept"), [("MAX(age) > 35", 1), ("MIN(age) > 35", 0), ("MIN(age) < 25", 1)]
)
def test_having_reads_the_extremes_that_are_released(tmp_path: Path, test: str, kept: int) -> None:
    # ages are 20 to 39; at this epsilon the extremes are within a year, but for a chance below
    # 1e-50
    answer = asked(tmp_path, f"SELECT COUNT(*) FROM people HAVING {test}", epsilon=EXACTLY)
    assert len(answer.rows) == kept
    assert any(note.startswith(test[:8]) for note in answer.notes)


def test_the_names_of_columns_are_each_once(tmp_path: Path) -> None:
    answer = asked(
        tmp_path, "SELECT COUNT(*), COUNT(*), SUM(age) AS x, COUNT(age) AS x FROM people", epsilon=1
    )
    names = [column["name"] for column in answer.columns]
    assert len(set(names)) == 4


@pytest.mark.parametrize("module", ["pandas", "polars"])
def test_a_library_that_is_not_installed_is_named(
    answer: Answer, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.query.answer.find_spec", lambda name: None)
    with pytest.raises(WrongUse, match=f"{module} is not installed"):
        getattr(answer, f"to_{module}")()


def test_a_plot_draws_the_clipped_values_beside_the_tables_own(tmp_path: Path) -> None:
    table = sf.Table(FRAME, columns={**columns(), "age": sf.Integer(0, 99, clip=30)})
    with sf.connect(
        {"people": table}, dataset="d", budget=sf.Budget(10**6), ledger=tmp_path / "l.db"
    ) as opened:
        answer = opened.query("SELECT sex, AVG(age) AS a FROM people GROUP BY sex", epsilon=EXACTLY)
    both, alone = answer.plot().svg, answer.plot("a_clipped").svg
    # one bar a row; two bars a row and two colours in the legend
    assert (alone.count("<rect"), both.count("<rect")) == (2, 6)
    assert "clipped" in both and "clipped:" not in alone
