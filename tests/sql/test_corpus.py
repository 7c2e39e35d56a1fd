# SPDX-License-Identifier: Apache-2.0
"""Every statement of the corpus has its verdict, and every refusal leads to a statement that is
answered.
"""

from fractions import Fraction

import pytest

from sfumato import errors
from sfumato.errors import Refused
from sfumato.metadata.column import Text
from sfumato.plan.aggregate import (
    CodeQuantiles,
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Sum,
    Variance,
)
from sfumato.plan.relation import Filter, PerUnit, PublicJoin, Ranked, Scan, Semi, UnitJoin
from sfumato.sql import understand
from tests.contracts.corpus import DATASET, TODAY, statements

STATEMENTS = list(statements())
ANSWERED = {each.name: each for each in STATEMENTS if each.verdict == "answered"}
REFUSED = {each.name: each for each in STATEMENTS if each.verdict == "refused"}


def understood(statement):
    scalar = statement.facts.get("scalar")
    scalars = None if scalar is None else lambda query: Fraction(scalar)
    return understand(statement.text, DATASET, today=TODAY, scalars=scalars)


def test_the_corpus_is_whole():
    assert len(ANSWERED) == 40 and len(REFUSED) == 34
    assert {"B11", "B14", "B19", "B27"} < set(ANSWERED)


@pytest.mark.parametrize("name", ANSWERED)
def test_a_statement_to_support_is_understood(name):
    question = understood(ANSWERED[name])
    assert question.raw.aggregates
    assert list(question.notes) == [
        words for words in ANSWERED[name].facts.get("note", "").split("\n") if words
    ]


@pytest.mark.parametrize("name", REFUSED)
def test_a_statement_to_refuse_is_refused_with_its_reason(name):
    with pytest.raises(Refused) as refusal:
        understood(REFUSED[name])
    facts = REFUSED[name].facts
    assert type(refusal.value) is getattr(errors, facts["error"])
    assert refusal.value.problem == facts["message"]
    assert refusal.value.remedy or refusal.value.allowed


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_leads_to_a_statement_that_is_answered(name):
    assert understand(REFUSED[name].facts["instead"], DATASET).raw.aggregates


SHAPES = {
    "A01": (Scan, (CountRows,)), "A02": (Scan, (CountUnits,)), "A05": (Scan, (Mean, CountRows)), "A07": (Scan, (CountRows,)),
    "A12": (Scan, (CodeQuantiles,)), "A14": (Scan, (Variance,)), "A15": (Scan, (CountValues, CountRows)), "A16": (Scan, (Sum,)),
    "A19": (Filter, (CountRows,)), "A20": (UnitJoin, (Mean,)), "A21": (PublicJoin, (CountRows,)), "A23": (PerUnit, (Mean,)),
    "A24": (PerUnit, (CountRows,)), "A25": (Filter, (CountRows,)), "A28": (Scan, (CountDistinct,)), "A29": (Scan, (Sum, CountRows)),
    "A31": (Semi, (CountRows,)), "A36": (Scan, (CodeQuantiles,)), "A37": (Semi, (CountRows,)), "A40": (Filter, (Mean,)),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_a_statement_has_the_shape_worked_out_by_hand(name):
    raw = understood(ANSWERED[name]).raw
    relation, aggregates = SHAPES[name]
    assert isinstance(raw.relation, relation)
    assert tuple(type(each) for each in raw.aggregates) == aggregates


def test_only_a_text_key_is_open():
    for name, statement in ANSWERED.items():
        for key in understood(statement).raw.keys:
            assert (key.codes is None) is isinstance(key.value.type, Text), name


def test_the_keys_of_the_corpus_are_those_worked_out_by_hand():
    sizes = {
        name: [key.size for key in understood(ANSWERED[name]).raw.keys]
        for name in ("A06", "A10", "A11", "A24", "A26", "A27", "A32", "A33", "A34", "B14")
    }
    # three regions and the missing one; a user has at most 10 rows in each of 5 groups; amounts
    # begin at 0
    assert sizes == {
        "A06": [4], "A10": [366], "A11": [12], "A24": [50], "A26": [366], "A27": [4, None], "A32": [4], "A33": [21],
        "A34": [4], "B14": [],
    }  # fmt: skip


def test_one_row_a_unit_by_rank():
    relation = understood(ANSWERED["A40"]).raw.relation
    assert isinstance(relation, Filter) and isinstance(relation.source, Ranked)


def test_a_broken_verdict_is_noticed(monkeypatch):
    from sfumato.sql import group

    monkeypatch.setattr(group, "_require_key", lambda node, scope: None)
    with pytest.raises((pytest.fail.Exception, AssertionError)):
        test_a_statement_to_refuse_is_refused_with_its_reason("B03")
