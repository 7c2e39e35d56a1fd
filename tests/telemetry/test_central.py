# SPDX-License-Identifier: Apache-2.0
"""The central guarantee of a shuffled task: that of the accountant, for the honest part of a batch."""

from fractions import Fraction

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from sfumato.accounting.amplify import shuffled
from sfumato.errors import InvalidDeclaration, SfumatoError
from sfumato.privacy.event import Shuffled
from sfumato.telemetry import central, report_task

KEY = ec.generate_private_key(ec.SECP256R1()).public_key()


def task(**fields):
    usual = {"epsilon": 2, "start": 0, "periods": 5, "min_batch": 50_000, "aggregator": KEY}
    return report_task("t", "?", ["yes", "no"], **(usual | fields))


def test_it_is_that_of_the_accountant_for_the_honest_reports():
    asked = task(reports=2)
    found = central(asked, "1e-8", dishonest="0.2")
    event = Shuffled(asked.oracle.event, 40_000)
    assert found.hidden == 40_000
    assert found.epsilon == Fraction(shuffled(event, "1e-8").upper) < Fraction(1, 5)
    assert found.life_epsilon == 10 * found.epsilon and found.life_delta == Fraction(10, 10**8)


def test_fewer_honest_reports_hide_less_and_none_hides_nothing():
    shares = [0, Fraction(1, 2), Fraction(9, 10), Fraction(99999, 100_000)]
    found = [central(task(), "1e-8", dishonest=share).epsilon for share in shares]
    assert found == sorted(found) and found[-1] == task().first_epsilon


@pytest.mark.parametrize("given", [-1, 1, "x", 2])
def test_a_share_outside_of_0_to_1_is_refused(given):
    with pytest.raises(SfumatoError):
        central(task(), "1e-8", dishonest=given)


def test_what_is_permanent_or_not_sealed_is_not_amplified():
    for asked in (task(aggregator=None), task(memory=5)):
        with pytest.raises(InvalidDeclaration, match="no central guarantee"):
            central(asked, "1e-8")
