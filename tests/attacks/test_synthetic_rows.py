# SPDX-License-Identifier: Apache-2.0
"""Attacks on synthetic rows: who was there, what he had, whose text it was."""

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2, norm

import sfumato as sf
from sfumato import synthetic as sy
from sfumato.accounting.account import account
from sfumato.audit import Verdict, audit
from sfumato.metadata.dataset import Dataset
from sfumato.noise import DiscreteGaussian
from sfumato.privacy.guarantee import ApproxDP
from tests.attacks.canaries import CANARY, faces, reached
from tests.synthetic.shadows import (
    COLUMNS,
    OTHERS,
    PERSON,
    Row,
    evidence,
    fit_task,
    fitted,
    residuals,
)
from tests.synthetic.towns import session, town

CLAIM = ApproxDP(Fraction(1), Fraction(1, 10**9))
WORLDS = ([*OTHERS, PERSON], OTHERS)


def information(given: Mapping[str, Any], counts: int = 200) -> float:
    """The information about the person in each of some fits of which he is no part, after a test
    that their noise is as large as stated.

    The squares of all noise of a fit, each over its variance, add up to a number that leaves the
    interval once in 10^9 times; of 200 counts or more, noise half or twice as large is noticed.
    """
    task, models, noise = fit_task(**given), [], np.zeros(0)
    while len(noise) < counts:
        models.append(fitted(task, OTHERS))
        noise = np.append(noise, residuals(models[-1]))
    low, high = chi2.ppf([5e-10, 1 - 5e-10], len(noise))
    assert low < float(np.square(noise).sum()) < high
    return max(evidence(model).information for model in models)


@pytest.mark.parametrize(
    "given",
    [
        {},
        # an analyst's constraint that only the person satisfies
        {"constraints": [sy.require("age = 3 AND job = 'z' AND rich")]},
        # and a workload that looks at nothing but his rare value
        {"workload": {"job": 1000}, "options": sy.Options(columns=["age", "job"], check=0)},
    ],
)
def test_the_best_test_of_membership_gains_what_is_charged(given):
    """The information is at most 2 rho (Bun and Steinke, 2016); prove/ runs the whole attack."""
    charged = 2 * float(account(fit_task().event).rho)
    assert information(given) <= charged
    # the most that epsilon = 1 allows is 0.46
    assert 2 * norm.cdf(math.sqrt(charged) / 2) - 1 < 0.07


def test_noise_that_is_smaller_than_stated_is_noticed(monkeypatch):
    half = DiscreteGaussian.sample

    def smaller(self, *given):
        return half(self, *given) // 2

    monkeypatch.setattr(DiscreteGaussian, "sample", smaller)
    with pytest.raises(AssertionError):
        information({})


def exact_rows(rows: list[Row]) -> int:
    """The mutant gives as many rows as there are."""
    model = fitted(fit_task(options=sy.Options(rounds=0, check=0)), rows)
    return len(model.sample(rows=len(rows))["t"])


def domain_of_data(rows: list[Row]) -> tuple[str, ...]:
    """The mutant takes the values of a column from the data."""
    jobs = sf.Category(*sorted({row["job"] for row in rows}))
    dataset = Dataset("d", {"t": sf.Table("t.csv", columns={**COLUMNS, "job": jobs})})
    few = sy.Options(rounds=0, check=0)
    model = fitted(fit_task(dataset=dataset, options=few), rows, dataset)
    return model.task.cells


def rounds_of_data(rows: list[Row]) -> int:
    """The mutant stops as soon as exact counts say that nothing is left to find."""
    jobs = {row["job"] for row in rows}
    few = sy.Options(rounds=min(3, len(jobs)), check=0)
    model = fitted(fit_task(options=few), rows)
    return len(model.released.pairs)


@pytest.mark.parametrize("mutant", [exact_rows, domain_of_data, rounds_of_data])
def test_models_that_break_the_promise_are_caught(mutant):
    found = audit(mutant, WORLDS, 44, claim=CLAIM, confidence="0.99")
    assert found.verdict is Verdict.VIOLATED


def test_texts_and_undeclared_values_are_in_no_row_and_no_page(tmp_path: Path):
    """Canaries stand in a text column, among the values of a category, and in the unit's ids."""
    size = 300
    rows = pa.table(
        {
            "who": [f"{CANARY} {k}" for k in range(size)],
            "note": [CANARY] * size,
            "job": [CANARY if k % 3 else "nurse" for k in range(size)],
            "age": [k % 4 for k in range(size)],
        }
    )
    columns = {"note": sf.Text(), "job": sf.Category("nurse", "smith"), "age": sf.Integer(0, 3)}
    with session(tmp_path, rows, columns=columns, unit=sf.Unit("who", max_rows_total=1)) as opened:
        model = sy.fit(opened, "people", epsilon=1, delta="1e-9")
        made = [model, model.report(), model.sample(), model.released, model.query(QUERY, copies=3)]
    report = tmp_path / "quality.html"
    model.report().save(report)
    written = [report, *model.save(tmp_path / "out")]
    for place in written:
        assert CANARY.encode() not in place.read_bytes()
    for thing in made:
        for path, inner in reached(thing, "made"):
            for face, text in faces(inner):
                assert CANARY not in text, (path, face)
    drawn = model.sample(rows=5000)["people"]
    assert drawn.column_names == ["job", "age"]
    assert set(drawn["job"].to_pylist()) <= {"nurse", "smith", None}


QUERY = "SELECT job, COUNT(*) AS n FROM people GROUP BY job"


def test_a_search_for_canaries_finds_one(tmp_path: Path):
    """The mutant keeps the private rows beside the model."""
    with session(tmp_path, town(100).select(["job", "rich"])) as opened:
        model = sy.fit(opened, "people", epsilon=1, delta="1e-9")
    model.private = replace(model.stored, body=CANARY.encode())  # type: ignore[attr-defined]
    faced = [text for _, inner in reached(model, "m") for _, text in faces(inner)]
    assert any(CANARY in text for text in faced)
