# SPDX-License-Identifier: Apache-2.0
"""What a task promises is what a question in SQL keeps."""

import inspect

from sfumato.query.choose import plan_for_price
from sfumato.query.price import price
from sfumato.query.release import Asked
from sfumato.query.task import Names, Task
from sfumato.sql.lower import understand
from tests.contracts.people import dataset
from tests.contracts.tasks import BY_SEX, measuring, who

PROMISED = {name for name, _ in inspect.getmembers(Task) if not name.startswith("_")}


def test_a_question_in_sql_is_a_task() -> None:
    declared = dataset()
    asked = Asked.of(
        plan_for_price(understand(BY_SEX, declared), declared, price(epsilon=1)), who()
    )
    assert {"cells", "event", "form", "kind", "line", "ready", "run", "size"} == PROMISED
    assert all(
        hasattr(each, name) for name in PROMISED for each in (asked, measuring(lambda _: b""))
    )
    assert (asked.kind, asked.cells, asked.size) == ("sql", (2,), None)
    assert asked.ready(declared) == asked.planned.bounded
    assert asked.event == asked.planned.event


def test_the_names_of_a_question_in_sql_are_its_keys() -> None:
    declared = dataset()
    asked = Asked.of(
        plan_for_price(understand(BY_SEX, declared), declared, price(epsilon=1)), who()
    )
    assert asked.names == Names(
        asked.question, who().statement_key(asked.planned.question), asked.shared, (), asked.parts
    )
    request = asked.request("key")
    assert (request.question, request.shared, request.key) == (asked.question, asked.shared, "key")
