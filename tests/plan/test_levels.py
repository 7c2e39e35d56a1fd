# SPDX-License-Identifier: Apache-2.0
"""Levels of grouping sets: what they say of their questions."""

from sfumato.plan.levels import Level, Levels
from sfumato.plan.show import form
from sfumato.privacy.distance import Norm
from sfumato.query.pipeline import compile_plan
from sfumato.sql.lower import understand
from tests.contracts.people import dataset


def level(sql: str, keys: tuple[int, ...], sets: tuple[int, ...]) -> Level:
    """A level with the question of a statement."""
    declared = dataset()
    return Level(keys, compile_plan(understand(sql, declared).raw, declared, Norm.L1), sets)


def test_levels_have_the_question_of_each_and_a_form_of_their_own() -> None:
    total = level("SELECT COUNT(*) FROM people", (), (1,))
    by_sex = level("SELECT COUNT(*) FROM people GROUP BY sex", (0,), (0,))
    assert Levels((by_sex, total)).questions == (by_sex.bounded, total.bounded)
    forms = [form(Levels(each)) for each in ((by_sex, total), (by_sex,), (total, by_sex))]
    assert len(set(forms)) == 3
    assert form(by_sex.bounded) in forms[0]
