# SPDX-License-Identifier: Apache-2.0
"""A task is canonical JSON, whose cost follows from its integers."""

import json
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.accounting import account
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.telemetry import report_task, task_from_bytes
from sfumato.telemetry.oracles import bit, category, hashed, projective, unary


def task(**fields):
    """A task whose other fields are usual."""
    usual = {"epsilon": 1, "start": 1_000_000, "periods": 28}
    return report_task("emoji", "Which?", ["a", "b"], **(usual | fields))


@given(
    oracle=st.sampled_from([category, projective, bit, hashed, unary]),
    epsilon=st.fractions(Fraction(1, 10), 5),
    texts=st.lists(st.text(min_size=1), min_size=1, max_size=5, unique=True),
    memory=st.integers(0, 40),
)
def test_a_task_is_the_same_bytes_everywhere(oracle, epsilon, texts, memory):
    try:
        domain = sf.telemetry.Listed(tuple(texts))
    except InvalidDeclaration:
        return
    made = task(epsilon=None, oracle=oracle(3, epsilon), memory=memory)
    made = replace(made, domain=domain, oracle=oracle(domain.size, epsilon))
    body = made.to_bytes()
    assert task_from_bytes(body) == made
    assert task_from_bytes(body).to_bytes() == body
    assert json.loads(body)["format"] == 1
    # no number is beyond what every language reads exactly
    json.loads(body, parse_int=lambda text: int(text) if abs(int(text)) < 1 << 53 else 1 / 0)


def test_every_byte_of_a_task_matters():
    body = task().to_bytes()
    for place in range(len(body)):
        for byte in (b" ", b"0", b"}"):
            changed = body[:place] + byte + body[place + 1 :]
            if changed == body:
                continue
            with suppress(InvalidDeclaration):
                assert task_from_bytes(changed).hash != task().hash


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"{}", b"[]", b'{"format":2}', b"\xff", b"[" * 100_000, b'{"format":1}'],
)
def test_what_is_no_task_is_refused(body):
    with pytest.raises(InvalidDeclaration, match="canonical"):
        task_from_bytes(body)


def test_spaces_and_more_fields_are_another_task():
    body = task().to_bytes()
    form = json.loads(body)
    for other in (json.dumps(form), json.dumps(form | {"x": 1}, separators=(",", ":"))):
        with pytest.raises(InvalidDeclaration):
            task_from_bytes(other.encode())


@pytest.mark.parametrize(
    ("periods", "memory", "reports", "draws"),
    [(28, 0, 1, 28), (28, 0, 3, 84), (28, 7, 1, 4), (28, 28, 1, 1), (28, 10, 1, 3), (1, 0, 1, 1)],
)
def test_a_life_costs_all_its_epochs(periods, memory, reports, draws):
    made = task(periods=periods, memory=memory, reports=reports)
    assert made.epochs == draws
    assert made.first_epsilon == account(made.oracle.event).epsilon
    assert made.life_epsilon == draws * made.first_epsilon
    # every period is in one of the epochs
    if memory:
        assert {made.epoch_of(period) for period in range(periods)} == set(range(draws))


def test_periods_begin_at_the_start():
    made = task(start=1000, period=100)
    found = [made.period_at(moment) for moment in (0, 999.9, 1000, 1099.9, 1100)]
    assert found == [-10, -1, 0, 0, 1]


@pytest.mark.parametrize(
    "fields",
    [
        {"start": -1},
        {"start": 1.5},
        {"period": 1},
        {"periods": 0},
        {"periods": 1 << 40},
        {"reports": 0},
        {"reports": True},
        {"reports": 2, "memory": 7},
        {"memory": -1},
        {"min_batch": 1},
        {"expires": 1_000_000},
        {"expires": "tomorrow"},
        {"epsilon": None},
        {"epsilon": 0},
        {"oracle": category(9, 1), "epsilon": None},
        {"oracle": category(3, 1)},
        {"other": "a"},
    ],
)
def test_fields_that_do_not_fit_are_refused(fields):
    with pytest.raises((InvalidDeclaration, InvalidNumber)):
        task(**fields)


@pytest.mark.parametrize("id", ["", "A", "a b", "-a", "a" * 64, None, "é"])
def test_an_id_is_short_and_plain(id):
    with pytest.raises(InvalidDeclaration, match="id"):
        report_task(id, "?", ["a"], epsilon=1, start=0, periods=1)


@pytest.mark.parametrize("question", ["", "x" * 1001, None, "\ud800"])
def test_a_task_has_its_question_in_words(question):
    with pytest.raises(InvalidDeclaration, match="words"):
        report_task("t", question, ["a"], epsilon=1, start=0, periods=1)


@pytest.mark.parametrize("epsilon", ["1e-9", 100])
def test_extreme_epsilons_are_taken_and_stated(epsilon):
    made = task(epsilon=epsilon, periods=1)
    assert 0 < made.life_epsilon <= Fraction(epsilon)
