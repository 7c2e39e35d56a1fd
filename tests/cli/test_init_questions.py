# SPDX-License-Identifier: Apache-2.0
"""What bounds mean for the noise, beside the error that a preview states."""

from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.cli.init_keys import Keys
from sfumato.cli.init_questions import asked, consequence
from sfumato.cli.init_sources import Columns
from sfumato.cli.init_toml import TableDraft


@pytest.mark.parametrize(("lower", "upper"), [(17, 90), (-5, 5), ("0", "1000000")])
def test_it_is_what_a_preview_says(tmp_path: Path, lower: object, upper: object) -> None:
    people = sf.Table(pa.table({"x": [1]}), columns={"x": sf.Integer(lower, upper)}, size=1000)  # type: ignore[arg-type]
    with sf.connect(
        {"people": people}, dataset="d", budget=sf.Budget(1), ledger=tmp_path / "ledger.db"
    ) as session:
        stated = session.preview("SELECT AVG(x) AS m FROM people", epsilon=0.1).error()
    (half_width,) = [row["half_width"] for row in stated if row["rows"] == 1000]
    said = float(consequence(lower, upper).rpartition(" ")[2])
    assert said == pytest.approx(half_width, rel=0.01)


def test_bounds_that_are_no_numbers_promise_nothing() -> None:
    assert "refused" in consequence("2000-01-01", "2001-01-01")
    assert "refused" in consequence(None, 1)


def test_an_empty_answer_leaves_a_place_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.prompt", lambda _, default, **__: default)
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    columns = Columns({"age": {"type": "integer"}})
    draft = TableDraft("people", "people.csv", columns)
    epsilon, (table,) = asked([draft], Keys.of({"people": ["age"]}))
    assert (epsilon, table.unit, table.codebook["age"]) == ("1", None, {"type": "integer"})


@pytest.mark.parametrize(
    ("kind", "form"), [("date", "%d/%m/%Y"), ("timestamp", "%d/%m/%Y %H:%M"), ("category", None)]
)
def test_the_order_of_a_day_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, kind: str, form: str | None
) -> None:
    monkeypatch.setattr("click.prompt", lambda _, default, **__: default)
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    guessed = {"type": kind, **({"format": form} if form else {})}
    draft = TableDraft("people", "people.csv", Columns({"day": {}}, {"day": guessed}))
    _, (table,) = asked([draft], Keys.of({"people": ["day"]}))
    assert table.codebook["day"].get("format") == form
