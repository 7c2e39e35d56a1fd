# SPDX-License-Identifier: Apache-2.0
"""A question is a value: equal fields make equal questions, and lowering makes them."""

from dataclasses import FrozenInstanceError

import pytest

from sfumato.metadata.column import Column, Integer
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.plan.aggregate import CountRows
from sfumato.plan.output import Item, Output
from sfumato.plan.question import Question
from sfumato.plan.relation import Scan
from sfumato.plan.scalar import Estimate
from sfumato.plan.stages import Raw
from sfumato.sql import understand

QUESTION = Question(
    "SELECT COUNT(*) AS n FROM people",
    "people",
    Raw(Scan("people", columns=(Column("age", Integer(0, 120)),)), (), (CountRows(),)),
    Output((Item("n", Estimate(0)),)),
)


def test_a_statement_becomes_a_question():
    dataset = Dataset("study", {"people": Table("people.csv", columns={"age": Integer(0, 120)})})
    assert understand(QUESTION.text, dataset) == QUESTION


def test_a_question_is_frozen():
    with pytest.raises(FrozenInstanceError):
        QUESTION.text = "SELECT 1"
