# SPDX-License-Identifier: Apache-2.0
"""The ledger says of every question of learning which label of which tables it read."""

import json
from pathlib import Path

import sfumato as sf
from sfumato import learning as ln
from sfumato.learning.described_task import line_about
from sfumato.ledger import Ledger
from tests.learning.rows import SELECT, connected, frame


def test_the_log_names_label_and_tables(tmp_path: Path) -> None:
    asked = {"label": "ill", "epsilon": 2}
    with connected(tmp_path, frame(200), sf.Budget(100, "1e-5")) as session:
        model = ln.fit(session, ln.NaiveBayes(bins=4), SELECT, **asked)
        again = ln.fit(session, ln.NaiveBayes(bins=4), SELECT, **asked)
        assert again.charge == model.charge
        ln.fit(session, ln.Additive(steps=3), SELECT, label="ill", rho=1)
        ln.fit(session, ln.KMeans(2), "SELECT age, pay FROM people", epsilon=1)
        ln.score(session, model, SELECT, **asked)
        ln.choose(session, [model, model], SELECT, **asked)
        ln.tune(session, [ln.NaiveBayes(bins=4)], SELECT, **asked)
        lines = [line for line in lines_of(session) if line]
    assert [line.partition("; ")[2] for line in lines] == [
        "ill from people",
        "ill from people, data version '1'",
        "rows from people",
        "ill from people",
        "ill from people",
        "ill from people",
    ]


def lines_of(session: sf.Session) -> list[str]:
    """The lines of the charges in the journal, oldest first."""

    ledger = session._ledger
    assert isinstance(ledger, Ledger)
    entries = ledger.store.read(
        lambda rows: [
            json.loads(entry.body)
            for chain in rows.chains()
            for entry in rows.entries(chain, 0)
            if entry.kind == "reserve"
        ]
    )
    return [body["line"] for body in entries]


def test_nothing_is_added_where_nothing_is_known() -> None:
    assert line_about("k-means", "") == "k-means"
