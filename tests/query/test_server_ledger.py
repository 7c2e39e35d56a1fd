# SPDX-License-Identifier: Apache-2.0
"""A session whose ledger is a PostgreSQL server: the same promises, for several sessions at
once.
"""

import pyarrow as pa

import sfumato as sf

PEOPLE = {
    "people": sf.Table(pa.table({"age": list(range(20, 60))}), columns={"age": sf.Integer(0, 99)})
}
COUNT = "SELECT COUNT(*) AS n FROM people"


def session(ledger: str) -> sf.Session:
    """A session over forty people."""
    return sf.connect(PEOPLE, dataset="tiny", budget=sf.Budget(3, "1e-6"), ledger=ledger)


def test_two_sessions_share_one_budget_and_one_answer(database: str) -> None:
    first, second = session(database), session(database)
    answer = first.query(COUNT, epsilon="0.1")
    assert second.query(COUNT, epsilon="0.1").bytes == answer.bytes
    assert second.query(COUNT, epsilon="0.2").bytes != answer.bytes
    assert first.budget.spent == second.budget.spent == "0.3"
    assert first.verify().problems == ()
    first.close()
    second.close()


def test_what_was_spent_is_there_for_the_next_session(database: str) -> None:
    first = session(database)
    answer = first.query(COUNT, epsilon="0.1")
    first.close()
    again = sf.connect(PEOPLE, dataset="tiny", ledger=database)
    assert (again.budget.spent, again.query(COUNT, epsilon="0.1").bytes) == ("0.1", answer.bytes)
    again.close()
