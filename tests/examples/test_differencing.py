# SPDX-License-Identifier: Apache-2.0
"""The differencing attack: sure on plain SQL, bounded by the proof here."""

import math
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.errors import BudgetExceeded
from sfumato.examples import differencing
from sfumato.examples.differencing import BITS, EPSILON, NAMES, Attack, attack, patients, sums
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.budget import Budget
from sfumato.privacy.unit import ReplaceOne
from sfumato.query.choose import Planned, plan_for_price
from sfumato.query.connect import connect
from sfumato.query.price import price
from sfumato.sql.lower import understand
from sfumato.testing import assert_at_most

BOUND = math.e / (1 + math.e)
# sure to notice an attacker who is right 94 times in 100, and 88 times with more trials; the bound
# is 73
TRIALS, NOTICES = 1_000, 0.94
MANY, NOTICES_OF_MANY = 2_000, 0.88


def test_the_two_questions_differ_in_one_person() -> None:
    five, four = sums()
    assert set(five.split("'")) - set(four.split("'")) == {NAMES[-1]}


def test_plain_sql_tells_the_secret(tmp_path: Path) -> None:
    found = attack(tmp_path, trials=0)
    assert found.plain == (3, 2)
    assert found.plain[0] - found.plain[1] == BITS[-1]


def test_the_bound_is_the_one_of_a_uniform_prior() -> None:
    assert Attack((0, 0), (0, 0), 0, 1, Fraction(1)).bound == pytest.approx(BOUND)
    assert 2 * EPSILON == 1


def test_a_changed_bit_costs_both_questions_in_full(tmp_path: Path) -> None:
    table = patients(BITS)
    dataset = Dataset("five-patients", {"patients": table}, ReplaceOne)
    plans = [
        plan_for_price(understand(sql, dataset), dataset, price(epsilon=EPSILON)) for sql in sums()
    ]
    # a changed bit moves each sum by at most one, so each costs epsilon and both cost E
    assert [plan.bounded.parts[0].distance.value for plan in plans] == [1, 1]
    assert sum(Fraction(plan.cost.epsilon) for plan in plans) == 1
    attack(tmp_path, trials=0)
    with connect(
        {"patients": table},
        dataset="five-patients",
        relation=ReplaceOne,
        ledger=tmp_path / "attack.db",
    ) as held:
        assert held.budget.limit == Budget(1)
        with pytest.raises(BudgetExceeded):
            held.query("SELECT SUM(diabetes) AS more FROM patients", epsilon="1e-12")


def test_the_attacker_is_right_no_more_often_than_the_proof_allows(tmp_path: Path) -> None:
    found = attack(tmp_path, trials=TRIALS)
    assert found.trials == TRIALS
    assert_at_most(found.successes, TRIALS, BOUND, notices=NOTICES, false_alarm=1e-9)
    # and does not guess against what it sees: it is wrong 44 times in 100; 66 would mean that the
    # attack is broken
    assert_at_most(TRIALS - found.successes, TRIALS, 0.45, notices=0.66, false_alarm=1e-9)


@pytest.mark.long
def test_many_trials_are_right_no_more_often_than_the_proof_allows(tmp_path: Path) -> None:
    found = attack(tmp_path, trials=MANY)
    assert_at_most(found.successes, MANY, BOUND, notices=NOTICES_OF_MANY, false_alarm=1e-9)
    assert_at_most(MANY - found.successes, MANY, 0.45, notices=0.6, false_alarm=1e-9)


def test_an_attack_on_answers_without_noise_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bare(planned: Planned, rows: differencing.Reference) -> int:
        return rows.run(planned.bounded, "attack")[0][()][0]

    monkeypatch.setattr(differencing, "_release", bare)
    found = attack(tmp_path, trials=TRIALS)
    assert found.successes == TRIALS
    with pytest.raises(AssertionError, match="was stated"):
        assert_at_most(found.successes, TRIALS, BOUND, notices=NOTICES, false_alarm=1e-9)


@pytest.mark.long
def test_noise_of_a_third_of_the_scale_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_little(planned: Planned, rows: differencing.Reference) -> int:
        exact = rows.run(planned.bounded, "attack")[0][()]
        weaker = type(planned.mechanisms[0])(type(planned.mechanisms[0].noise)("0.4"))
        return weaker.release(exact)[0]

    monkeypatch.setattr(differencing, "_release", too_little)
    with pytest.raises(AssertionError, match="was stated"):
        assert_at_most(
            attack(tmp_path, trials=MANY).successes,
            MANY,
            BOUND,
            notices=NOTICES_OF_MANY,
            false_alarm=1e-9,
        )
