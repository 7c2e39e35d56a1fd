# SPDX-License-Identifier: Apache-2.0
"""Marginals with a wanted error: the least cost that keeps it, chosen by what is left, refused
free.
"""

from fractions import Fraction
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.errors import TargetUnreachable, WrongUse
from sfumato.noise import DiscreteLaplace
from sfumato.privacy.distance import Norm
from sfumato.query.allowance import Allowance
from sfumato.query.grouping_levels import GRIDS
from sfumato.query.marginal_target import least_of_left, tasks_for_error
from sfumato.query.marginals import MarginalsTask
from sfumato.query.price import OnAverage, price
from tests.contracts.people import dataset, session

TWO = sf.Unit("person", max_rows_total=2)
BY = [("sex", "smoker"), ("age",)]


def tasks(error: object, most: object = 10, *, concentrated: bool = True) -> list[MarginalsTask]:
    asked = price(error=error, max_epsilon=most)
    return tasks_for_error(dataset(unit=TWO), "people", BY, asked, concentrated=concentrated)


@pytest.mark.parametrize("error", [3, "20", "7.5"])
def test_the_error_is_kept_and_a_step_less_does_not_keep_it(error: object) -> None:
    for each in tasks(error):
        fine, norm = each.plan.refinement, each.allowance.norm
        assert each.mechanism.error("0.95") <= Fraction(error) * fine
        less = each.costing(Allowance(norm, each.allowance.amount - GRIDS[norm]))
        assert less.mechanism.error("0.95") > Fraction(error) * fine


def test_the_cost_of_laplace_noise_is_the_one_worked_out_by_hand() -> None:
    (task,) = tasks(20, concentrated=False)
    # two marginals, each moved by 2 rows: P(|noise| > 20 rows) <= 0.05 at scale 20 / ln 20, nearly
    assert float(task.allowance.amount) == pytest.approx(2 * 2 * 2.99573 / 20, rel=1e-4)


def test_an_error_on_average_bounds_the_mean_square() -> None:
    laplace, gaussian = tasks(OnAverage(5))
    fine = laplace.plan.refinement
    for each in (laplace, gaussian):
        assert each.mechanism.noise.variance.upper <= (5 * fine) ** 2
    # sigma = 5 rows, where each of two marginals is moved by 2
    assert float(gaussian.allowance.amount) == pytest.approx(2 * 2**2 / (2 * 5**2), rel=1e-4)


def test_what_is_left_decides_and_it_is_said(tmp_path: Path) -> None:
    with session(tmp_path, budget=(10, "1e-6"), unit=TWO) as opened:
        found = opened.marginals("people", BY, error=20, max_epsilon=3)
        assert found.task.allowance.norm is Norm.L2 and all(each.error() <= 20 for each in found)
        assert (
            "Gaussian noise chosen as the cheaper" in repr(found)
            and "closes the pure gate" in found.notes[1]
        )
        spent = opened.budget.spent_rho
        again = opened.marginals("people", BY, error=20, max_epsilon=3)
        assert again.recalled and opened.budget.spent_rho == spent


def test_a_pure_account_is_asked_for_laplace_noise(tmp_path: Path) -> None:
    with session(tmp_path, budget=(10,), unit=TWO) as opened:
        found = opened.marginals("people", BY, error=20, max_epsilon=3)
        assert isinstance(found.task.mechanism.noise, DiscreteLaplace)
        assert found.notes == (
            "Laplace noise chosen as the cheaper: of what is left, Laplace would take 5.99%.",
        )


def test_the_stored_one_is_taken_even_where_another_is_cheaper_now() -> None:
    laplace, gaussian = tasks(20)
    assert least_of_left([laplace, gaussian], [], lambda each: each is gaussian) == (gaussian, ())


def test_an_error_that_costs_too_much_is_refused_free_with_the_least(tmp_path: Path) -> None:
    with session(tmp_path, unit=TWO) as opened:
        with pytest.raises(TargetUnreachable, match="the least is about"):
            opened.marginals("people", BY, error=1, max_epsilon="0.01")
        for wrong in (
            {"error": "5%", "max_epsilon": 1},
            {"error": 5},
            {"max_epsilon": 1},
            {"error": 5, "rho": 1},
        ):
            with pytest.raises(WrongUse):
                opened.marginals("people", BY, **wrong)
        assert opened.budget.spent == "0"


def test_an_allowance_below_the_grid_is_refused() -> None:
    with pytest.raises(TargetUnreachable):
        tasks(10**9, "1e-9")
