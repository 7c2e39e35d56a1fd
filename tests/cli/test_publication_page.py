# SPDX-License-Identifier: Apache-2.0
"""The page of a publication: escaped, with every table, and a picture where one helps."""

from pathlib import Path

import pyarrow as pa

import sfumato as sf
from sfumato.cli.publication_page import page


def test_a_page_has_every_table_and_no_markup_of_its_titles(tmp_path: Path) -> None:
    rows = pa.table({"k": [f"<{place % 20}>" for place in range(400)], "n": [1] * 400})
    columns = {"k": sf.Category(*(f"<{place}>" for place in range(20))), "n": sf.Integer(0, 1)}
    with sf.connect(
        {"t": sf.Table(rows, columns=columns)},
        dataset="d",
        budget=sf.Budget(10**4),
        ledger=tmp_path / "l.db",
    ) as session:
        planned = session.plan(
            {
                "one": "SELECT COUNT(*) AS c FROM t",
                "many": "SELECT k, COUNT(*) AS c FROM t GROUP BY k",
            },
            epsilon=1000,
        )
        answers = planned.run()
    made = page("A <b>", {"one": "First <i>", "many": "Second"}, answers)
    assert "A &lt;b&gt;" in made and "First &lt;i&gt;" in made and "<i>" not in made
    # one row has no picture; twenty have one, and are folded
    assert made.count("<svg") == 1 and "<summary>20 rows</summary>" in made
    assert made.index("First") < made.index("Second") and "&lt;7&gt;" in made
