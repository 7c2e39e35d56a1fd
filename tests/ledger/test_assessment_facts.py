# SPDX-License-Identifier: Apache-2.0
"""Facts of assessments: each number worked out again by its closed form."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.ledger import Ledger
from sfumato.ledger.assessment import assess
from sfumato.ledger.assessment_facts import Evidence, Fact, mechanisms_of, warnings_of
from sfumato.ledger.summary import summary
from sfumato.metadata.column import Integer
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.privacy import Budget
from tests.contracts.charges import concentrated, opened, paid, pure

TABLE = Table("place-of-marker.csv", columns={"age": Integer(0, 99)}, size=40)


def evidence_of(ledger: Ledger, table: Table = TABLE) -> Evidence:
    dataset = Dataset("d", {"t": table})
    return Evidence(summary(ledger, "d"), dataset, mechanisms_of(ledger, "d"), has_heads=True)


def facts(evidence: Evidence) -> dict[str, Fact]:
    """All facts of the documents for an owner, by their English labels."""
    sections = [
        section for kind in ("pipia", "dpia") for section in assess(kind, evidence, {}).sections
    ]
    return {label: fact for section in sections for label, fact in section.facts.items()}


def percent(text: str) -> float:
    assert text.endswith("%")
    return float(text[:-1]) / 100


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 0), ("0.5", 0), (3, "1e-6")])
def test_what_an_attacker_reaches_by_closed_forms(tmp_path: Path, epsilon, delta) -> None:
    ledger = opened(tmp_path / "l.db", epsilon, delta)
    facts_now = facts(evidence_of(ledger))
    factor, loss = math.exp(float(epsilon)), float(delta)
    # the trade-off of (epsilon, delta); the best guess between two; the odds 1 to 9 times e^epsilon
    power = min(factor * 0.01 + loss, 1 - (1 - loss - 0.01) / factor)
    right = (factor + loss) / (1 + factor)
    found = percent(facts_now["Singling out: members found at 1% false alarms, at most"].value)
    guessed = percent(facts_now["Linking: right guesses between two candidates, at most"].value)
    believed = percent(facts_now["Inference: a belief of 10% rises to at most"].value)
    assert power <= found <= power + 0.0002
    assert right <= guessed <= right + 0.0002
    least = factor / (factor + 9)
    # with a delta the bound of the belief is wider than e^epsilon allows
    assert least <= believed <= (least + 0.0002 if not delta else least * 1.3)
    assert float(facts_now["... except with probability"].value) == pytest.approx(10 * loss)


def test_beyond_an_epsilon_of_20_no_bound_is_stated(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db", 1000)
    label = "Linking: right guesses between two candidates, at most"
    assert facts(evidence_of(ledger))[label].value == "no useful bound"


def test_sums_of_the_ledger_and_their_sources(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db", 2)
    paid(ledger, pure("0.25", "one"))
    paid(ledger, pure("0.5", "two"))
    ledger.refresh("d", Budget(1), reason="a new year")
    paid(ledger, pure("0.125", "three"))
    known = facts(evidence_of(ledger))
    # rho of a pure epsilon is epsilon^2 / 2: 1/32 + 1/8 + 1/128
    assert known["Spent in all periods"] == Fact(
        "ε 0.875, \N{GREEK SMALL LETTER RHO} 0.1640625", "charge"
    )
    assert known["Bound over the lifetime of the rows"] == Fact("ε 3", "entry")
    assert known["Periods of the budget"].value == "2"
    assert known["Charges"].value == "3"
    assert known["Declared columns"] == Fact("t.age", "declaration")
    assert known["Bounds of values"].value == "t.age Integer(0, 99)"
    # e^3 = 20.0855
    assert "at most 20.09" in known["In words"].value


def test_mechanisms_are_those_of_the_charges(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db", 2, "1e-6")
    assert mechanisms_of(ledger, "d") == ()
    paid(ledger, pure("0.25", "one"))
    one = mechanisms_of(ledger, "d")
    assert len(one) == 1 and "laplace" in one[0]
    paid(ledger, concentrated("0.01"))
    both = mechanisms_of(ledger, "d")
    assert len(both) == 2 and any("gaussian" in name for name in both)
    assert mechanisms_of(ledger, "e") == ()


def warned(evidence: Evidence) -> dict[str, str]:
    return dict(warnings_of(evidence))


def test_each_warning_comes_with_its_cause_alone(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db", 3, "1e-6")
    before = evidence_of(ledger)
    assert warned(before) == {"row": "t", "open": ""}
    assert warned(evidence_of(ledger, replace(TABLE, size=None))) == {
        "row": "t", "open": "", "size": "t",
    }  # fmt: skip
    # 1e-6 is 1 / 1,000,000
    million = evidence_of(ledger, replace(TABLE, size=1_000_000))
    assert warned(million)["delta"] == "0.000001"
    assert "delta" not in warned(evidence_of(ledger, replace(TABLE, size=999_999)))
    assert "head" in warned(replace(before, has_heads=False))
    assert "violated" in warned(replace(before, audit={"verdict": "VIOLATED"}))
    paid(ledger, pure("0.25", "one"))
    assert "unstated" in warned(evidence_of(ledger))
    ledger.freeze("d", reason="over")
    assert "open" not in warned(evidence_of(ledger))
    ledger.thaw("d")
    ledger.refresh("d", Budget("0.5", "1e-6"), reason="a new year")
    # one period's epsilon is below 3, the lifetime's is above
    renewed = warned(evidence_of(ledger))
    assert (renewed["refreshed"], renewed["epsilon"]) == ("2", "3.5")
