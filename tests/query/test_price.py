# SPDX-License-Identifier: Apache-2.0
"""Every price that can be stated, and every one that cannot."""

import math
import re
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidNumber, SfumatoError, WrongUse
from sfumato.query.price import OnAverage, Price, Target, cost_alone, price
from tests.contracts.shell import COUNT

BAD = [
    0, -1, -0.1, math.nan, math.inf, -math.inf, 1e-400, "1e-400", "0", "-0.1", "nan", "inf", "abc", "", "1/0", True, False,
    [], {}, (), None, 5e-324, 1e300, "1e300", "1e-13", Decimal("NaN"), Decimal("Infinity"), b"1", 1 + 1j, "0x10", "1e999999999",
]  # fmt: skip


@pytest.mark.parametrize("name", ["epsilon", "rho"])
@pytest.mark.parametrize("value", BAD, ids=repr)
def test_a_bad_cost_is_refused_with_a_typed_error(name: str, value: object) -> None:
    with pytest.raises(WrongUse) as refused:
        price(**{name: value})
    assert refused.value.allowed or refused.value.remedy
    if value is not None:
        assert isinstance(refused.value, InvalidNumber)
        assert name in refused.value.problem


@pytest.mark.parametrize("value", [each for each in BAD if each is not None], ids=repr)
def test_a_bad_cap_is_refused(value: object) -> None:
    with pytest.raises(InvalidNumber, match="max_epsilon"):
        price(error=10, max_epsilon=value)


@pytest.mark.parametrize(
    "value",
    [0, -1, math.nan, math.inf, "abc", "0%", "-5%", "nan%", "%", "5%%", [], True, "1e-401", "% 5"],
    ids=repr,
)
def test_a_bad_error_is_refused(value: object) -> None:
    with pytest.raises(InvalidNumber, match="error"):
        price(error=value, max_epsilon=1)


@pytest.mark.parametrize("value", [0, -1, "abc", "0%", True, None], ids=repr)
def test_a_bad_error_on_average_is_refused(value: object) -> None:
    with pytest.raises(InvalidNumber, match="error"):
        price(error=OnAverage(value), max_epsilon=1)


def test_an_error_on_average_is_told_apart() -> None:
    assert price(error=OnAverage("5%"), max_epsilon=1).target == Target(
        Fraction(1, 20), relative=True, average=True
    )
    assert price(error="5%", max_epsilon=1).target == Target(Fraction(1, 20), relative=True)


def test_a_float_that_is_zero_says_that_it_was_written_too_small() -> None:
    with pytest.raises(InvalidNumber) as refused:
        price(epsilon=1e-400)
    assert "write it as a string" in refused.value.remedy


@pytest.mark.parametrize(
    "given_prices",
    [
        {},
        {"epsilon": 1, "rho": 1},
        {"epsilon": 1, "error": 1},
        {"epsilon": 1, "error": 1, "max_epsilon": 1},
    ],
)
def test_exactly_one_price_is_needed(given_prices: dict[str, object]) -> None:
    with pytest.raises(WrongUse, match="exactly one of epsilon=, rho= and error="):
        price(**given_prices)
    with pytest.raises(WrongUse, match="A delta alone is no cost"):
        price(delta="1e-6")


@pytest.mark.parametrize(
    "given_prices", [{"error": 1}, {"epsilon": 1, "max_epsilon": 1}, {"rho": 1, "max_epsilon": 1}]
)
def test_an_error_and_its_cap_go_together(given_prices: dict[str, object]) -> None:
    with pytest.raises(WrongUse, match="go together"):
        price(**given_prices)


@pytest.mark.parametrize("delta", [0, 1, -1, "0.6", "1e-25", "nan", True])
def test_a_delta_that_is_none_is_refused(delta: object) -> None:
    with pytest.raises(InvalidNumber, match="delta"):
        price(epsilon=1, delta=delta)


def test_a_delta_goes_with_epsilon_or_rho() -> None:
    assert (
        price(epsilon=1, delta="1e-6").delta
        == price(rho=1, delta="1e-6").delta
        == Fraction(1, 10**6)
    )
    with pytest.raises(WrongUse, match="delta="):
        price(error=1, max_epsilon=1, delta="1e-6")


def test_a_share_of_a_price_is_exact_and_an_error_has_none() -> None:
    assert price(epsilon=1, delta="1e-6").scaled(Fraction(1, 3)) == Price(
        epsilon=Fraction(1, 3), delta=Fraction(1, 10**6)
    )
    assert price(rho="0.3").scaled(Fraction(1, 3)).rho == Fraction(1, 10)
    target = price(error=5, max_epsilon=1)
    assert target.scaled(Fraction(1)) == target
    with pytest.raises(WrongUse, match="answered first"):
        target.scaled(Fraction(1, 2))


@given(st.fractions(Fraction(1, 10**12), 10**6))
def test_a_fraction_is_taken_as_it_is(cost: Fraction) -> None:
    assert price(epsilon=cost).epsilon == cost
    assert price(rho=cost).rho == cost


@given(st.floats(1e-12, 1e6))
def test_a_float_is_taken_as_the_decimal_that_it_prints(cost: float) -> None:
    assert price(epsilon=cost).epsilon == Fraction(repr(cost))


@pytest.mark.parametrize("edge", ["1e-12", 10**6])
def test_the_edges_are_allowed(edge: object) -> None:
    assert price(epsilon=edge).epsilon == Fraction(edge)


@pytest.mark.parametrize(
    ("error", "amount", "relative"),
    [(100, 100, False), ("0.5", "1/2", False), ("5%", "1/20", True)],
)
def test_an_error_is_absolute_or_a_percentage(
    error: object, amount: object, *, relative: bool
) -> None:
    asked = price(error=error, max_epsilon="0.5")
    assert asked.target is not None
    assert (asked.target.amount, asked.target.relative, asked.most) == (
        Fraction(amount),
        relative,
        Fraction(1, 2),
    )


@given(
    st.text(max_size=8)
    | st.floats()
    | st.integers()
    | st.booleans()
    | st.none()
    | st.binary(max_size=4)
)
def test_no_value_gives_anything_but_a_price_or_a_typed_error(value: object) -> None:
    for name in ("epsilon", "rho"):
        try:
            asked = price(**{name: value})
        except SfumatoError:
            continue
        assert Fraction(1, 10**12) <= (asked.epsilon or asked.rho or 0) <= 10**6


@given(st.integers(1, 10**15), st.integers(0, 9))
def test_shares_of_whole_tenths_never_add_up_to_more_than_the_price(units, tenths):
    whole = Price(rho=Fraction(units, 7 * 10**12))
    try:
        kept = whole.in_whole_tenths()
    except InvalidNumber:
        assert whole.rho < Fraction(1, 10**11)
        return
    assert whole.rho - Fraction(1, 10**11) < kept.rho <= whole.rho
    for share in (Fraction(tenths, 10), 1 - Fraction(tenths, 10)):
        assert (kept.scaled(share).rho * 10**12).denominator == 1


@given(st.fractions(Fraction(1, 10**9), 3), st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_charges_of_shares_never_add_up_to_more_than_the_price(cost, weights):
    for whole in (Price(epsilon=cost), Price(rho=cost)):
        shares = [whole.shared(Fraction(weight, sum(weights))) for weight in weights]
        paid = [share.epsilon or share.rho or Fraction(0) for share in shares]
        charged = [math.ceil(part * 10**12) for part in paid]
        assert sum(charged) <= math.ceil(cost * 10**12)
        assert sum(paid) > cost - Fraction(len(weights), 10**12)
        if len(weights) > 1:
            assert sum(charged) <= cost * 10**12


def test_the_whole_price_is_no_share_and_nothing_is_left_of_the_least_one():
    third = Price(epsilon=Fraction(1, 3), delta=Fraction(1, 10**6))
    assert third.shared(Fraction(1)) is third
    assert third.shared(Fraction(1, 3)).delta == third.delta
    with pytest.raises(InvalidNumber, match="unit"):
        Price(rho=Fraction(1, 10**12)).shared(Fraction(1, 2))


def test_intervals_are_bought_with_a_cost_and_by_the_question_itself_alone() -> None:
    stated = price(epsilon=1, delta="1e-9")
    bought = stated.buying(interval=True)
    assert (bought.interval, bought.epsilon) == (True, stated.epsilon)
    assert stated.buying(interval=False) == stated
    assert bought.shared(Fraction(1, 2)).interval
    # what another question needs has no interval and no delta
    assert bought.without_extras() == price(epsilon=1)
    with pytest.raises(WrongUse, match="with error="):
        price(error=5, max_epsilon=1).buying(interval=True)
    with pytest.raises(WrongUse, match="interval=1"):
        stated.buying(interval=1)


@pytest.mark.parametrize("given", [{}, {"epsilon": 1, "rho": 1}])
def test_what_takes_no_target_error_does_not_advise_one(given) -> None:
    with pytest.raises(WrongUse) as refusal:
        cost_alone(**given)
    assert "error=" not in str(refusal.value)
    assert cost_alone(rho="0.01") == price(rho="0.01")


def test_every_call_without_error_refuses_no_price_in_its_own_words() -> None:
    with sf.examples.people() as session:
        sql = "SELECT AVG(AGEP) FROM people"
        calls = [
            lambda: session.diagnose(sql),
            lambda: session.advise(sql),
            lambda: sf.learning.preview(session, sf.learning.KMeans(2), "SELECT AGEP FROM people"),
            lambda: sf.synthetic.preview(session, "people"),
        ]
        for call in calls:
            with pytest.raises(WrongUse, match="exactly one of epsilon= and rho=") as refusal:
                call()
            assert "error=" not in str(refusal.value)


@pytest.mark.parametrize("buy", [price, cost_alone])
def test_the_prices_that_a_refusal_advises_are_taken(buy) -> None:
    with pytest.raises(WrongUse) as refusal:
        buy()
    advised = re.findall(r"\b(epsilon|rho|error|max_epsilon)=([\d.]+\d)", refusal.value.remedy)
    stated = dict(advised)
    alone = [{name: stated[name]} for name in ("epsilon", "rho")]
    if "error" in stated:
        alone.append({name: stated[name] for name in ("error", "max_epsilon")})
    assert len(alone) == (3 if buy is price else 2)
    for each in alone:
        assert isinstance(buy(**each), Price)


def test_the_price_that_a_refusal_advises_in_the_shell_is_taken(shell) -> None:
    refused = shell.run("query", COUNT)
    words = re.search(r"In the shell: (--epsilon [\d.]+\d)\.", refused.err)
    assert refused.code == 2 and words is not None
    assert shell.run("query", COUNT, *words[1].split()).code == 0
