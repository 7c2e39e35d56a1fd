# SPDX-License-Identifier: Apache-2.0
"""Drafts of a session: they are free, read nothing that is stored, and know what is answered."""

from pathlib import Path

import pyarrow as pa

import sfumato as sf
from sfumato.query.price import price

COUNT = "SELECT COUNT(*) AS n FROM t"
NESTED = "SELECT COUNT(*) AS n FROM t WHERE a > (SELECT AVG(a) FROM t)"


def test_drafts_are_the_same_before_and_after_an_answer(tmp_path: Path) -> None:
    table = sf.Table(pa.table({"a": [1, 2, 3]}), columns={"a": sf.Integer(0, 9)})
    with sf.connect(
        {"t": table}, dataset="d", budget=sf.Budget(10), ledger=tmp_path / "l.db"
    ) as session:
        for text, is_whole in ((COUNT, True), (NESTED, False)):
            asked = price(epsilon=1)
            before = session._statements.draft(text, asked)
            assert (before.is_whole, before.stored) == (is_whole, False)
            spent = session.budget.spent
            session.query(text, epsilon=1)
            after = session._statements.draft(text, asked)
            assert after.stored and after.asked.planned == before.asked.planned
            assert after.most(asked) == before.most(asked)
            assert after.most(asked).epsilon == 10**12
            assert session.budget.spent != spent
