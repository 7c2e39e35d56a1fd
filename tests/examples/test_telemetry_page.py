# SPDX-License-Identifier: Apache-2.0
"""The page of the demo: complete, escaped, and it says what is made up."""

from cryptography.hazmat.primitives.asymmetric import ec

from sfumato.examples.made_up_devices import questions
from sfumato.examples.telemetry_findings import find
from sfumato.examples.telemetry_page import Story, page
from sfumato.examples.telemetry_processes import Sent
from sfumato.telemetry import simulate


def test_it_says_who_sent_what_and_that_the_truth_is_made_up() -> None:
    asked = questions(1_800_000_000, ec.generate_private_key(ec.SECP256R1()).public_key())
    sums = {}
    for question in asked[1:]:
        truth = {period: dict(counts) for period, counts in question.truth.items()}
        sums[question.task.id] = {
            period: simulate(
                question.task,
                {value: count // 50 for value, count in counts.items()},
                period=period,
            )
            for period, counts in truth.items()
        }
    sent = [Sent("Node", 50_600, 20.0), Sent("Java", 50_600, 5.0)]
    story = Story(asked, sent, sums, find(asked, sums), "<yes & no>", "spent", 42.0)
    made = page(story)
    assert made.startswith("<!doctype html>") and made.count("<svg") == 4
    for words in ("made up: nobody here exists", "101,200", "10,120", "900,000", "Node client"):
        assert words in made
    assert "&lt;yes &amp; no&gt;" in made and "<yes" not in made
    # one file: nothing is loaded
    assert "<script" not in made and "<link" not in made and 'src="' not in made
