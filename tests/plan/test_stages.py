# SPDX-License-Identifier: Apache-2.0
"""Raw, tracked and bounded plans are different types, and none can be altered."""

from dataclasses import FrozenInstanceError, fields
from fractions import Fraction
from typing import get_type_hints

import pytest

import sfumato as sf
from sfumato.engines.base import Engine
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.reference import Reference
from sfumato.metadata.column import Column
from sfumato.plan.aggregate import CountRows
from sfumato.plan.relation import Scan
from sfumato.plan.stages import Bounded, Limits, Part, Raw, Tracked
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Distance, Norm

RAW = Raw(Scan("people"), (), (CountRows(),))
TRACKED = Tracked(RAW, None, Limits(None, None, None), 1)
BOUNDED = Bounded(TRACKED, Norm.L1, 1, (Part(CountRows(), Distance(Norm.L1, Fraction(1)), 1),))


@pytest.mark.parametrize("engine", [Engine, DuckDB, Reference])
def test_an_engine_takes_bounded_plans_only(engine):
    assert get_type_hints(engine.ready)["plan"] is Bounded
    assert get_type_hints(engine.statement)["plan"] is Bounded


def test_a_bounded_plan_says_its_norm_and_its_distances():
    assert {each.name for each in fields(Bounded)} == {"tracked", "norm", "refinement", "parts"}
    assert {each.name for each in fields(Part)} == {"aggregate", "distance", "groups"}


@pytest.mark.parametrize(
    ("plan", "name"),
    [(RAW, "keys"), (TRACKED, "unit"), (BOUNDED, "refinement"), (BOUNDED.parts[0], "distance")],
)
def test_a_plan_cannot_be_altered_after_its_proof(plan, name):
    with pytest.raises(FrozenInstanceError):
        setattr(plan, name, None)


def test_groups_are_public_where_every_key_says_them():
    age = Value.of(Column("age", sf.Integer(0, 9)))
    known, unknown = GroupKey(age, (1, 2)), GroupKey(age, None)
    opens = [
        Raw(Scan("people"), keys, ()).is_open
        for keys in ((), (known,), (unknown,), (known, unknown))
    ]
    assert opens == [False, False, True, True]
