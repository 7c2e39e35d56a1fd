# SPDX-License-Identifier: Apache-2.0
"""What a task promises is what a question in SQL keeps."""

import inspect

from sfumato.query.choose import plan_for_price
from sfumato.query.price import price
from sfumato.query.release import Asked, SqlTask
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
    task = SqlTask.of(asked)
    for name in PROMISED:
        assert hasattr(task, name)
        assert hasattr(measuring(lambda _: b""), name)
    assert (task.kind, task.cells, task.size) == ("sql", (2,), None)
    assert task.ready(declared) == asked.planned.bounded
    assert task.event == asked.planned.event


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
