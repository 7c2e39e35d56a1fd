# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows: tables of declarations, costs and errors, escaped, and no data."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf

SQL = "SELECT COUNT(*) AS n FROM people WHERE age < 50"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[sf.Session]:
    rows = pa.table({"age": [48765, 30], "k": ["<b>secret</b>", "x"]})
    columns = {"age": sf.Integer(0, 99), "k": sf.Category("x", "<i>y</i>")}
    with sf.connect(
        {"people": sf.Table(rows, columns=columns)},
        dataset="d",
        budget=sf.Budget(9, "1e-6"),
        ledger=tmp_path / "l.db",
    ) as opened:
        yield opened


def test_everything_that_a_notebook_shows_is_a_table_without_data(session: sf.Session) -> None:
    answer = session.query(SQL, epsilon=1)
    shown = {
        "session": session,
        "budget": session.budget,
        "preview": session.preview(SQL, epsilon=1),
        "plan": session.plan({"<i>name</i>": SQL}, epsilon=1),
        "cost": answer.cost,
        "diagnosis": session.diagnose("SELECT AVG(age) AS a FROM people", epsilon=1),
    }
    for name, each in shown.items():
        page = each._repr_html_()
        assert page.startswith('<table class="sfumato">'), name
        assert "48765" not in page and "secret" not in page and "<i>" not in page, name
    assert "Integer(0, 99)" in shown["session"]._repr_html_()
    assert "<td>spent</td>" in shown["budget"]._repr_html_()
    assert "discrete Laplace" in shown["cost"]._repr_html_()
    assert "nothing was charged" in shown["plan"]._repr_html_()


def test_a_frame_is_shown_as_its_statement(session: sf.Session) -> None:
    frame = session.table("people").where(sf.col("age") < 50).agg(n=sf.count())
    assert frame._repr_html_() == ("<pre>SELECT COUNT(*) AS n FROM people WHERE age &lt; 50</pre>")
