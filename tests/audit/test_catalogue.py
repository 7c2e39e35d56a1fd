# SPDX-License-Identifier: Apache-2.0
"""Every mechanism of the house is in the catalogue, holds what it promises, and no more than
that.
"""

import inspect
from fractions import Fraction

import pytest

from sfumato import mechanisms
from sfumato.accounting import Profile
from sfumato.audit import Verdict, catalogue, verify
from sfumato.audit.catalogue import TOLERANCE, Checked, Promised
from sfumato.mechanisms import AdditiveMechanism, laplace
from sfumato.mechanisms.ladder import LadderMechanism
from sfumato.noise import DiscreteLaplace
from sfumato.privacy import ApproxDP, Distance, Norm

ALL = {each.name: each for each in catalogue()}
EXACT = [name for name, each in ALL.items() if each.exact]
L1 = Distance(Norm.L1, Fraction(1))
CELL = ((0,), (1,))


def test_every_mechanism_is_in_it_once():
    kinds = [getattr(mechanisms, name) for name in mechanisms.__all__]
    all_of_them = {
        kind for kind in kinds if inspect.isclass(kind) and {"event", "release"} <= set(dir(kind))
    }
    assert {type(each.mechanism) for each in ALL.values()} == all_of_them | {LadderMechanism}
    assert len(ALL) == len(list(catalogue()))


@pytest.mark.parametrize("name", EXACT)
def test_every_promise_that_can_be_worked_out_holds(name):
    checked = ALL[name].check(runs=0)
    assert checked.verdict is Verdict.HOLDS and checked.runs is None, str(checked.law)


@pytest.mark.parametrize("name", EXACT)
def test_less_than_half_of_a_promise_is_violated(name):
    promised = ALL[name]
    claim, share = promised.claim, Fraction(45, 100)
    if claim.epsilon is None:
        less = Profile(None, claim.rho * share**2, claim.delta * share)
    else:
        less = Profile.pure(claim.epsilon * share, claim.delta * share)
    found = verify(promised.mechanism, promised.distance, claim=less, tolerance=TOLERANCE)
    assert found.verdict is Verdict.VIOLATED


@pytest.mark.parametrize("name", ALL)
def test_runs_accuse_none_and_state_their_power(name):
    # each accusation would be wrong with a probability of at most 1e-9
    ran = ALL[name].check(runs=300).runs
    assert ran.verdict is Verdict.UNDECIDED and ran.confidence == 1 - Fraction(1, 10**9)
    assert ran.notices > ran.claim and 0 < ran.notices_delta <= 1


@pytest.mark.parametrize("name", ["threshold-laplace", "threshold-gaussian", "threshold-geometric"])
def test_deltas_are_large_enough_for_runs(name):
    assert ALL[name].claim.delta >= Fraction(1, 100)


class Halved(AdditiveMechanism):
    """Accounts for the noise of its law, and adds half of it."""

    def release(self, exact, drawn=None):
        noise = self.draw(len(exact)) if drawn is None else drawn
        return tuple(value + int(extra / 2) for value, extra in zip(exact, noise, strict=True))


def test_a_check_is_violated_by_either_of_its_tools():
    honest, halved = laplace(L1, 1), Halved(DiscreteLaplace(1))
    right = Promised("right", honest, L1, CELL)
    by_law = Promised("by law", halved, L1, CELL)
    by_runs = Promised("by runs", halved, L1, CELL, exact=False)
    other_code = Promised("other code", honest, L1, CELL, run=halved.release)
    assert right.check(3000).verdict is Verdict.HOLDS
    assert by_law.check(0).verdict is Verdict.VIOLATED
    for each in (by_runs, other_code):
        assert each.check(0).verdict is (Verdict.HOLDS if each.exact else Verdict.UNDECIDED)
        checked = each.check(3000)
        assert checked.verdict is checked.runs.verdict is Verdict.VIOLATED


def test_a_stated_promise_is_what_is_checked():
    honest = laplace(L1, 1)
    stated = Promised("too much", honest, L1, CELL, stated=ApproxDP("0.5", "0.01"))
    assert stated.claim == ApproxDP("0.5", "0.01")
    assert stated.check(0).verdict is Verdict.VIOLATED
    assert Promised("as it is", honest, L1, CELL).claim == Profile.pure(Fraction(1))


def test_progress_is_passed_on():
    seen = []
    ALL["laplace"].check(50, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (50, 50)
    assert isinstance(ALL["laplace"].check(0), Checked)
