# SPDX-License-Identifier: Apache-2.0
"""Lattices that were coarser than the data: each answered zeros, or a number beside its
interval.
"""

from contextlib import closing
from fractions import Fraction

import pandas as pd
import pytest

import sfumato as sf
from sfumato.engines.duckdb import DuckDB
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.distance import Norm
from sfumato.sql import arithmetic, quotient, typed, understand
from tests.contracts import compared
from tests.contracts.unnoised import unnoised

NORMS = pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
VISITS = pd.DataFrame({"person": [each // 5 for each in range(500)], "cost": [40.0] * 500})


def asked(frame, statement, norm, **options):
    """The cells of a statement without noise."""
    data = Dataset("d", {"t": sf.Table(frame, **options)})
    with closing(DuckDB(data.tables)) as engine:
        return unnoised(understand(statement, data), data, engine, norm)


@NORMS
@pytest.mark.parametrize(
    "kind", [sf.Real(0, 100), sf.Integer(0, 100), sf.Real(0, 100, step="0.01")]
)
def test_the_mean_of_a_person_has_a_lattice_of_its_own(norm, kind):
    statement = (
        "SELECT AVG(m), SUM(CASE WHEN m > 10 THEN 1 ELSE 0 END), COUNT_IF(m = 40), STDDEV(m) "
        "FROM (SELECT person, AVG(cost) AS m FROM t GROUP BY person)"
    )
    ((mean, above, equal, deviation),) = asked(
        VISITS, statement, norm, columns={"cost": kind}, unit=sf.Unit("person", max_rows=10)
    )
    assert (above, equal) == (100, 100)
    assert abs(mean - 40) < Fraction(1, 10**5) and deviation < Fraction(1, 10**5)


def test_a_mean_of_more_rows_than_a_limit_is_their_mean():
    # a cut sum over a cut count was 80
    frame = pd.DataFrame({"person": [1] * 20, "cost": [40] * 20})
    unit = sf.Unit("person", max_rows_total=10)
    statement = "SELECT AVG(m), AVG(q) FROM (SELECT person, AVG(cost) AS m, SUM(cost) / COUNT(cost) AS q FROM t GROUP BY person)"
    assert asked(frame, statement, Norm.L1, columns={"cost": sf.Integer(0, 100)}, unit=unit) == [
        [40, 40]
    ]


@NORMS
def test_a_rate_is_compared_exactly(norm):
    shown = [1000 + each for each in range(100)]
    frame = pd.DataFrame({"clicks": [each * 3 // 200 + each % 3 for each in shown], "shown": shown})
    columns = {"clicks": sf.Integer(0, 10**5), "shown": sf.Integer(0, 10**6)}
    true = sum(
        1000 * clicks > 15 * each for clicks, each in zip(frame.clicks, frame.shown, strict=True)
    )
    assert 0 < true < 100
    statement = "SELECT COUNT_IF(clicks / NULLIF(shown, 0) > 0.015), COUNT(*) FILTER (WHERE 0.015 < clicks / NULLIF(shown, 0)) FROM t"
    assert asked(frame, statement, norm, columns=columns) == [[true, true]]


@NORMS
def test_a_mean_beside_a_deviation_is_what_it_is_alone(norm):
    frame = pd.DataFrame({"income": [51_000 + each % 2 * 290 for each in range(1000)]})
    columns = {"income": sf.Integer(0, 1_000_000)}
    ((alone,),) = asked(frame, "SELECT AVG(income) FROM t", norm, columns=columns)
    ((beside, deviation),) = asked(
        frame, "SELECT AVG(income), STDDEV_POP(income) FROM t", norm, columns=columns
    )
    assert alone == beside == 51_145 and abs(deviation - 145) < Fraction(1, 100)


@pytest.mark.parametrize(
    ("test", "true"),
    [
        ("x < 2.1", 3),
        ("x <= 2.1", 3),
        ("x > 2.1", 2),
        ("x >= 2.1", 2),
        ("x = 2.1", 0),
        ("x < 2.25", 3),
    ],
)
def test_a_constant_between_two_declared_points_has_one_meaning(test, true):
    frame = pd.DataFrame({"x": [1.5, 1.75, 2.0, 2.25, 2.5]})
    assert asked(
        frame,
        f"SELECT COUNT(*) FROM t WHERE {test}",
        Norm.L1,
        columns={"x": sf.Real(0, 4, step="0.25")},
    ) == [[true]]


def test_a_small_range_inside_a_large_one_is_told_from_nothing():
    frame = pd.DataFrame({"a": range(100), "b": [100] * 100})
    columns = {"a": sf.Integer(0, 10**6), "b": sf.Integer(0, 10**6)}
    ((mean,),) = asked(
        frame, "SELECT AVG(LEAST(a / NULLIF(b, 0), 1)) FROM t", Norm.L1, columns=columns
    )
    assert abs(mean - Fraction(99, 200)) < Fraction(1, 10**6)


# --- every statement of a grammar ------------------------------------------------------------


def test_statements_without_noise_are_those_of_plain_duckdb():
    found = compared.compare(seed=3, worlds=3, each=10)
    assert found.wrong == []
    assert found.counts["compared"] > 25


def constants_rounded(patch):
    patch.setattr(typed, "is_of_range", lambda kind: True)


def products_rounded(patch):
    honest = quotient.floored
    patch.setattr(
        quotient, "floored", lambda below, value: honest(below, value.limit_denominator(7))
    )


def steps_untold(patch):
    honest, number = arithmetic.finest_step, arithmetic.Number
    patch.setattr(arithmetic, "finest_step", lambda size: honest(size) * 2**40)
    patch.setattr(
        arithmetic,
        "Number",
        lambda code, step, rounding=0, *more, **kept: number(
            code, step, Fraction(0), *more, **kept
        ),
    )


@pytest.mark.parametrize(
    ("mutant", "seed"), [(constants_rounded, 11), (products_rounded, 3), (steps_untold, 2)]
)
def test_a_lattice_that_is_coarser_is_noticed(monkeypatch, mutant, seed):
    mutant(monkeypatch)
    assert compared.compare(seed, worlds=1, each=8).wrong
