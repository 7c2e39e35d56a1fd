# SPDX-License-Identifier: Apache-2.0
"""Keys of the answers to tasks: all that the answer depends on, and a form that leaves something
out.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.plan.show import form
from sfumato.privacy.event import PureEvent, event_to_json
from sfumato.query.asker import SEMANTICS
from sfumato.query.choose import plan_for_price
from sfumato.query.price import price
from sfumato.sql.lower import understand
from tests.contracts.people import dataset
from tests.contracts.tasks import BY_SEX, measuring, who

EVENT = PureEvent(Fraction(1))


@dataclass(frozen=True)
class Small:
    """A task of two fields."""

    column: str
    levels: tuple[int, ...] = ()

    @property
    def form(self) -> str:
        return form(self)


class Forgetful(Small):
    """A task whose form leaves its levels out."""

    @property
    def form(self) -> str:
        return form(self.column)


def keys(tasks: Sequence[Small]) -> list[str]:
    return [who().names("small", each.form, EVENT).question for each in tasks]


def different(kind: type[Small]) -> bool:
    """Whether tasks that differ in anything have different keys."""
    tasks = [kind("age"), kind("sex"), kind("age", (1,)), kind("age", (1, 2)), kind("age", (12,))]
    return len(set(keys(tasks))) == len(tasks)


def test_tasks_that_differ_have_different_keys() -> None:
    assert different(Small)
    others = [("other", "f", EVENT), ("kind", "g", EVENT), ("kind", "f", PureEvent(Fraction(2)))]
    names = [who().names(*each) for each in [("kind", "f", EVENT), *others]]
    assert len({each.question for each in names}) == len({each.shared for each in names}) == 4
    # the statement is what was asked, at any price
    assert len({each.statement for each in names}) == 3


def test_a_form_that_leaves_something_out_is_noticed() -> None:
    assert not different(Forgetful)


def test_the_key_of_a_task_names_who_asks_about_which_data() -> None:
    one = who()
    version = replace(
        one, dataset=type(one.dataset)("tiny", one.dataset.tables, one.dataset.relation, "2")
    )
    others = [replace(one, analyst="ann"), replace(one, purpose="research"), version]
    assert len({each.names("kind", "f", EVENT).question for each in [one, *others]}) == 4
    assert {each.names("kind", "f", EVENT).shared for each in [one, *others[:2]]} == {
        one.names("kind", "f", EVENT).shared
    }


def test_a_key_is_the_hash_of_canonical_json() -> None:
    one = who()
    facts = {
        "analyst": "owner",
        "contract": json.dumps(one.contract.about_data(), sort_keys=True, separators=(",", ":")),
        "event": event_to_json(EVENT),
        "form": "f",
        "kind": "kind",
        "purpose": "unstated",
        "semantics": SEMANTICS,
        "version": one.dataset.version,
    }
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    assert one.names("kind", "f", EVENT).question == hashlib.sha256(text.encode()).hexdigest()


def test_a_task_cannot_be_named_as_a_question_in_sql() -> None:
    declared = dataset()
    plan = plan_for_price(understand(BY_SEX, declared), declared, price(epsilon=1))
    names = who().names("sql", form([plan.bounded, plan.question.output]), plan.event)
    assert who().question_key(plan) not in (names.question, names.shared, names.statement)


def test_a_request_is_of_the_account_that_asks() -> None:
    task, one = measuring(lambda curator: b""), who()
    request = one.request(task.event, one.names(task.kind, task.form, task.event), "my key")
    assert (request.scope.id, request.key, request.event) == (one.account, "my key", task.event)
