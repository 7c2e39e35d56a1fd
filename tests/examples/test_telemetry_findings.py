# SPDX-License-Identifier: Apache-2.0
"""Findings of the demo: estimates beside the truth; a hijack is noticed, and no hijack is not."""

from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from sfumato.examples.made_up_devices import NEW_WORDS, THIS_WEEK, questions
from sfumato.examples.telemetry_findings import TRUTH, Found, find
from sfumato.telemetry import simulate


@pytest.fixture(scope="module")
def found() -> Found:
    """The estimates, of simulated devices alone."""
    asked = questions(1_800_000_000, ec.generate_private_key(ec.SECP256R1()).public_key())
    sums = {}
    for question in asked[1:]:
        # of the days only the last
        kept = question.truth if question.task.id == "home-page" else [question.period]
        sums[question.task.id] = {
            period: simulate(question.task, question.truth[period], period=period)
            for period in kept
        }
    return find(asked, sums)


def test_it_finds_what_the_devices_hold(found: Found) -> None:
    assert found.is_noticed and "snoozle" in found.words
    assert set(found.words) <= set(NEW_WORDS)
    words = "\n".join(found.lines)
    assert "noticed in its week: True" in words and "of 51 candidates" in words


def test_a_week_without_a_hijack_is_not_noticed(found: Found) -> None:
    assert not replace(found, weeks=found.weeks[:-1]).is_noticed


def test_each_estimate_stands_beside_its_truth(found: Found) -> None:
    for bars in (found.emoji_bars(), found.word_bars(), found.week_bars()):
        assert [bar.series == TRUTH for bar in bars] == [True, False] * (len(bars) // 2)
        for true, estimate in zip(bars[::2], bars[1::2], strict=True):
            assert true.label == estimate.label
            # more than ten standard errors
            assert abs(true.value - estimate.value) < 12_000
    assert len(found.week_bars()) == 2 * (THIS_WEEK + 1)
    assert len(found.day_bars()) == 2
