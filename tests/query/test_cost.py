# SPDX-License-Identifier: Apache-2.0
"""What a cost says, against hand arithmetic."""

from fractions import Fraction

import pytest

from sfumato.accounting.budget_gates import NOTHING, Charge
from sfumato.query.choose import Planned, plan_for_price
from sfumato.query.cost import cost_of
from sfumato.query.price import price
from sfumato.sql.lower import understand
from tests.contracts.people import dataset

SQL = "SELECT COUNT(*), SUM(age) FROM people"


def planned(sql: str = SQL, **asked: object) -> Planned:
    """A planned question of the small world."""
    declared = dataset()
    return plan_for_price(understand(sql, declared), declared, price(**asked))


@pytest.mark.parametrize("asked", [{"epsilon": "0.3"}, {"rho": "0.007"}])
def test_the_items_add_up_to_the_stated_cost(asked: dict[str, str]) -> None:
    cost = planned(**asked).cost
    for name, stated in asked.items():
        assert sum(Fraction(item[name]) for item in cost.items) == Fraction(stated)
        assert getattr(cost, name) == stated


def test_a_pure_cost_books_half_its_square_an_item_as_rho() -> None:
    cost = planned("SELECT COUNT(*) FROM people", epsilon="0.1").cost
    assert (cost.epsilon, cost.rho, cost.delta) == ("0.1", "0.005", "0")
    assert str(cost) == "epsilon = 0.1"


def test_a_gaussian_has_no_pure_cost() -> None:
    cost = planned(rho="0.01").cost
    assert cost.epsilon == "unbounded"
    assert {item["epsilon"] for item in cost.items} == {"unbounded"}
    assert str(cost) == "rho = 0.01"


def test_an_item_names_the_very_noise() -> None:
    (item,) = planned("SELECT COUNT(*) FROM people", epsilon="0.1").cost.items
    assert item == {
        "release": "COUNT(*)",
        "mechanism": "discrete Laplace",
        "parameter": "scale 10",
        "sensitivity": "L1 1 steps",
        "epsilon": "0.1",
        "rho": "0.005",
        "delta": "0",
    }
    (item,) = planned("SELECT SUM(age) FROM people", rho="0.5").cost.items
    assert (item["parameter"], item["sensitivity"]) == ("sigma^2 9801", "squared L2 9801 steps")


def test_the_stored_form_holds_everything() -> None:
    cost = planned(epsilon=1).cost
    assert cost.to_json() == {
        "epsilon": "1",
        "rho": cost.rho,
        "delta": "0",
        "items": list(cost.items),
    }


def test_what_is_charged_is_what_is_shown() -> None:
    for asked in ({"epsilon": "1/3"}, {"rho": "1/7"}, {"epsilon": "0.123456789012"}):
        plan = planned(**asked)
        charge, cost = plan.charge, plan.cost
        assert cost.rho == _shown(charge.rho)
        assert cost.epsilon == ("unbounded" if charge.epsilon is None else _shown(charge.epsilon))


def _shown(units: int) -> str:
    text = f"{units / 10**12:.12f}".rstrip("0").rstrip(".")
    assert Fraction(text) == Fraction(units, 10**12)
    return text


@pytest.mark.parametrize("asked", [{"epsilon": "0.2"}, {"rho": "0.01"}])
def test_quantiles_and_open_groups_cost_what_was_stated(asked: dict[str, str]) -> None:
    cost = planned("SELECT MEDIAN(age), QUANTILE_CONT(hours, 0.9) FROM people", **asked).cost
    ((name, stated),) = asked.items()
    assert 0 <= Fraction(stated) - Fraction(getattr(cost, name)) <= Fraction(1, 10**9)
    assert {item["mechanism"] for item in cost.items} == {
        "exponential mechanism over the values of the range"
    }
    cost = planned("SELECT job, COUNT(*) FROM people GROUP BY job", delta="1e-7", **asked).cost
    assert Fraction(cost.delta) <= Fraction(1, 10**7)
    assert "threshold" in cost.items[1]["mechanism"]
    # half for the keys
    assert abs(2 * Fraction(cost.items[1][name]) - Fraction(stated)) <= Fraction(stated) / 1000
    assert str(cost).endswith(f", delta = {float(cost.delta):.3g}")


def test_a_part_that_was_paid_before_names_its_charge() -> None:
    paid, new = {0: "a" * 32}, planned(epsilon="0.4")
    parts, events = (
        new.bounded.parts,
        tuple(
            item.event(part.distance)
            for item, part in zip(new.mechanisms, new.bounded.parts, strict=True)
        ),
    )
    half = cost_of(Charge(2 * 10**11, 2 * 10**10, 0), parts, events, paid)
    assert str(half) == f"epsilon = 0.2 (the rest was paid before by charge {'a' * 12})"
    assert not half.is_earlier
    whole = cost_of(NOTHING, parts, events, {0: "a" * 32, 1: "b" * 32})
    assert str(whole) == f"nothing now, paid before by charge {'a' * 12} and charge {'b' * 12}"
    assert whole.is_earlier
    for shown in (half._repr_html_(), whole._repr_html_()):
        assert "<td>paid before</td>" in shown and "<td>0</td><td>0</td><td>0</td>" not in shown


def test_a_page_has_no_unbounded_epsilon() -> None:
    shown = planned(rho="0.01").cost._repr_html_()
    assert "unbounded" not in shown and "none (Gaussian noise)" in shown
