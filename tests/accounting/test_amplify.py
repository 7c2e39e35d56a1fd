# SPDX-License-Identifier: Apache-2.0
"""Samples and shuffles against the exact laws of small ones, and against values of others."""

import math
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import amplify
from sfumato.accounting.amplify import (
    after_sampling,
    before_sampling,
    before_shuffling,
    clone_bound,
    sampled_delta,
    shuffled,
    shuffled_delta,
    whole_epsilon,
)
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.exact.rounding import log_down
from sfumato.privacy import (
    ApproxDP,
    FixedSample,
    PoissonSample,
    PureEvent,
    RandomizedResponse,
    Relation,
    Shuffled,
    WithReplacementSample,
)
from tests.accounting import laws
from tests.accounting.laws import NOTHING, Law, hockey_stick, number

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
ONE, MILLIONTH, THIRD = Fraction(1), Fraction(1, 10**6), Fraction(1, 3)
DESIGNS = [PoissonSample(THIRD), FixedSample(2, 4), WithReplacementSample(3, 4)]
NOISE = laws.laplace(ONE)
EPSILONS = (Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))


# --- samples


def profile(epsilon: Fraction, copies: int) -> Fraction:
    """The exact delta of Laplace noise of scale 1 on a count that moves by so much."""
    with ctx.workprec(laws.PRECISION):
        delta = hockey_stick(laws.shifted(NOISE, 0), laws.shifted(NOISE, copies), epsilon)
        return Fraction(int((delta * 2**90).floor().unique_fmpz()) + 1, 2**90)


def pairs(design) -> list[tuple[Law, Law]]:
    """The noisy sum of a sample of yes-or-no values, before and after one comes, or is replaced."""

    def noisy(total):
        return laws.shifted(NOISE, total)

    if isinstance(design, PoissonSample):
        return [
            tuple(laws.poisson(units, design.rate, noisy) for units in (n, n + 1)) for n in range(3)
        ]
    draw = laws.redrawn if isinstance(design, WithReplacementSample) else laws.fixed
    return [
        tuple(draw((*rest, last), design.size, noisy) for last in (0, 1))
        for rest in ((0, 0, 0), (0, 1, 1))
    ]


def is_bound(design) -> bool:
    with ctx.workprec(laws.PRECISION):
        return all(
            bool(
                hockey_stick(*pair, epsilon)
                <= number(sampled_delta(design, design.relation, epsilon, profile))
            )
            for pair in pairs(design)
            for epsilon in EPSILONS
        )


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: type(design).__name__)
def test_a_sample_shows_at_most_its_share_of_the_profile(design):
    assert is_bound(design)


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: type(design).__name__)
def test_a_sample_shows_about_as_much_somewhere(design):
    """The bound is reached where nobody else is there; with replacement it is near."""
    epsilon = EPSILONS[1]
    found = float(sampled_delta(design, design.relation, epsilon, profile))
    worst = max(float(hockey_stick(*pair, epsilon)) for pair in pairs(design))
    assert (
        worst <= found <= worst * (1.3 if isinstance(design, WithReplacementSample) else 1 + 1e-9)
    )


WRONG = {
    "a rate squared": lambda design, epsilon: log_down(
        1 + (amplify.exp_down(epsilon) - 1) / amplify._share(design) ** 2
    ),
    "a share of epsilon": lambda design, epsilon: epsilon / amplify._share(design) ** 2,
    "the wrong direction": lambda design, epsilon: 3 * epsilon / amplify._share(design),
}


@pytest.mark.parametrize("slip", WRONG)
@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: type(design).__name__)
def test_a_wrong_epsilon_of_the_whole_is_caught(slip, design, monkeypatch):
    monkeypatch.setattr(amplify, "whole_epsilon", WRONG[slip])
    assert not is_bound(design)


def test_repeats_that_are_not_counted_are_caught():
    design = WithReplacementSample(3, 4)

    def once(epsilon, copies):
        return profile(epsilon, 1)

    pair = pairs(design)[0]
    assert not bool(
        hockey_stick(*pair, EPSILONS[3])
        <= number(sampled_delta(design, REPLACE, EPSILONS[3], once))
    )


def test_many_draws_with_replacement_are_a_poisson_number_of_copies():
    """1000 draws out of 1000: copies are nearly Poisson(1).

    With a delta of k/100 for k copies, about 1/100.
    """
    design = WithReplacementSample(1000, 1000)
    found = sampled_delta(
        design, REPLACE, ONE, lambda epsilon, copies: min(Fraction(copies, 100), ONE)
    )
    assert Fraction(1, 100) <= found <= Fraction(1, 100) + Fraction(1, 10**15)
    assert sampled_delta(
        WithReplacementSample(5, 1), REPLACE, ONE, lambda epsilon, copies: Fraction(copies, 7)
    ) == Fraction(5, 7)


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: type(design).__name__)
def test_a_sample_under_another_relation_raises(design):
    other = REPLACE if design.relation is ADD else ADD
    for ask in (
        lambda relation: after_sampling(design, relation, ApproxDP(ONE, MILLIONTH)),
        lambda relation: before_sampling(design, relation, ApproxDP(ONE, MILLIONTH)),
        lambda relation: sampled_delta(design, relation, ONE, profile),
    ):
        ask(design.relation)
        with pytest.raises(InvalidDeclaration, match=other.value):
            ask(other)


SIZES = st.integers(1, 60)
ALL_DESIGNS = st.one_of(
    st.builds(PoissonSample, st.fractions(min_value=Fraction(1, 10**6), max_value=1)),
    st.builds(lambda size, others: FixedSample(size, size + others), SIZES, SIZES),
    st.builds(WithReplacementSample, SIZES, SIZES),
)


@given(
    ALL_DESIGNS,
    st.fractions(min_value=Fraction(1, 10**9), max_value=20),
    st.fractions(min_value=0, max_value=Fraction(1, 1000)),
)
@settings(deadline=None)
def test_what_is_bought_for_a_sample_costs_at_most_what_was_wanted(design, epsilon, delta):
    whole = before_sampling(design, design.relation, ApproxDP(epsilon, delta))
    back = after_sampling(design, design.relation, whole)
    assert epsilon * (1 - Fraction(1, 10**30)) <= back.epsilon <= epsilon + Fraction(1, 10**40)
    if whole.delta < 1:
        assert delta * (1 - Fraction(1, 10**30)) <= back.delta <= delta * (1 + Fraction(1, 10**30))


def test_a_sample_bought_too_dear_is_caught(monkeypatch):
    monkeypatch.setattr(amplify, "log_down", lambda number: log_down(number) + Fraction(1, 1000))
    whole = before_sampling(PoissonSample(THIRD), ADD, ApproxDP(ONE, MILLIONTH))
    assert after_sampling(PoissonSample(THIRD), ADD, whole).epsilon > ONE + Fraction(1, 10**40)


@pytest.mark.parametrize(
    "design", [PoissonSample(ONE), FixedSample(7, 7), WithReplacementSample(1, 1)]
)
def test_a_sample_of_everybody_is_the_whole(design):
    assert whole_epsilon(design, Fraction(3)) == 3
    assert after_sampling(design, design.relation, ApproxDP(ONE, MILLIONTH)) == ApproxDP(
        ONE, MILLIONTH
    )


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: type(design).__name__)
def test_an_epsilon_beyond_all_sense_is_not_amplified(design):
    far = Fraction(10**9)
    assert whole_epsilon(design, far) == far
    assert before_sampling(design, design.relation, ApproxDP(far, MILLIONTH)).epsilon >= far / 3


# --- shuffles, by all outcomes of all that others may hold


def histogram(randomizer: dict[int, list[arb]], values: tuple[int, ...]) -> Law:
    """How many of each report, by adding one unit after the other."""
    law: dict[tuple[int, ...], arb] = {(0,) * len(randomizer[0]): arb(1)}
    with ctx.workprec(laws.PRECISION):
        for value in values:
            after: dict[tuple[int, ...], arb] = {}
            for counts, mass in law.items():
                for report, chance in enumerate(randomizer[value]):
                    key = (*counts[:report], counts[report] + 1, *counts[report + 1 :])
                    after[key] = after.get(key, NOTHING) + mass * chance
            law = after
    return law


def response(epsilon0: Fraction, categories: int) -> dict[int, list[arb]]:
    return {
        truth: list(laws.response(truth, epsilon0, categories).values())
        for truth in range(categories)
    }


def chosen_subset(epsilon0: Fraction, size: int) -> dict[int, list[arb]]:
    """One of the sets of so many of three values, with the odds for those that hold the true
    one.
    """
    sets = [each for each in product((0, 1), repeat=3) if sum(each) == size]
    with ctx.workprec(laws.PRECISION):
        odds = number(epsilon0).exp()
        made = {truth: [odds if each[truth] else arb(1) for each in sets] for truth in range(3)}
        return {
            truth: [each / sum(weights, NOTHING) for each in weights]
            for truth, weights in made.items()
        }


def worst(randomizer: dict[int, list[arb]], reports: int, epsilon: Fraction) -> arb:
    """The largest delta, whatever the others hold and whatever two values the victim may."""
    values, found = sorted(randomizer), NOTHING
    for others in combinations_with_replacement(values, reports - 1):
        for one, other in combinations(values, 2):
            pair = (histogram(randomizer, (one, *others)), histogram(randomizer, (other, *others)))
            with ctx.workprec(laws.PRECISION):
                found = found.max(hockey_stick(*pair, epsilon))
    return found


def is_at_most(one: float | arb, other: float | arb) -> bool:
    with ctx.workprec(laws.PRECISION):
        left, right = (
            each if isinstance(each, arb) else number(Fraction(each)) for each in (one, other)
        )
        return bool(left <= right + laws.SLACK)


RESPONSES = [
    (Fraction(1, 2), 2, 1),
    (Fraction(1), 2, 2),
    (Fraction(1), 2, 5),
    (Fraction(3), 2, 7),
    (Fraction(1, 10), 2, 7),
    (Fraction(1), 3, 3),
    (Fraction(2), 4, 3),
    (Fraction(3), 3, 4),
]
PARTS = (Fraction(0), Fraction(1, 5), Fraction(1, 2), Fraction(9, 10))


@pytest.mark.parametrize(("epsilon0", "categories", "reports"), RESPONSES)
def test_a_shuffle_hides_at_least_so_well(epsilon0, categories, reports):
    event = Shuffled(RandomizedResponse(epsilon0, categories), reports)
    for part in PARTS:
        truth = worst(response(epsilon0, categories), reports, part * epsilon0)
        assert is_at_most(truth, shuffled_delta(event, part * epsilon0).upper)


@pytest.mark.parametrize(("epsilon0", "categories", "reports"), RESPONSES)
def test_a_shuffle_hides_no_better(epsilon0, categories, reports):
    event = Shuffled(RandomizedResponse(epsilon0, categories), reports)
    for part in PARTS:
        found = shuffled_delta(event, part * epsilon0).lower
        truth = worst(response(epsilon0, categories), reports, part * epsilon0)
        assert is_at_most(found, truth)
        # with two values it is nearly all there is
        assert categories > 2 or found >= 0.7 * float(truth)


@pytest.mark.parametrize(
    "randomizer", ["response of 2", "response of 3", "one of three", "two of three"]
)
@pytest.mark.parametrize("epsilon0", [Fraction(1, 2), Fraction(2)])
def test_any_randomizer_hides_among_fewer_clones(randomizer, epsilon0):
    made = {
        "response of 2": lambda: response(epsilon0, 2),
        "response of 3": lambda: response(epsilon0, 3),
        "one of three": lambda: chosen_subset(epsilon0, 1),
        "two of three": lambda: chosen_subset(epsilon0, 2),
    }[randomizer]()
    event = Shuffled(PureEvent(epsilon0, REPLACE), 4)
    for part in PARTS:
        assert is_at_most(
            worst(made, 4, part * epsilon0), shuffled_delta(event, part * epsilon0).upper
        )


def test_not_every_randomizer_makes_as_many_clones_as_a_response():
    """What the share 2/(e + 1) needs: R(x) >= (R(x0) + R(x1))/(e + 1) at every report, for all
    values.
    """

    def holds(randomizer: dict[int, list[arb]], epsilon0: Fraction) -> bool:
        with ctx.workprec(laws.PRECISION):
            odds = number(epsilon0).exp()
            return all(
                bool(least + laws.SLACK >= (one + other) / (odds + 1))
                for least, one, other in (
                    (randomizer[x][y], randomizer[a][y], randomizer[b][y])
                    for x, a, b in product(randomizer, repeat=3)
                    if a != b
                    for y in range(len(randomizer[0]))
                )
            )

    assert all(holds(response(ONE, categories), ONE) for categories in (2, 3, 7))
    assert not holds(chosen_subset(ONE, 2), ONE)


# As many clones as others; each clone for two; a victim who lies as often as not.
SLIPS = {
    "all are clones": lambda odds, rate, *rest: HIDDEN(odds, Fraction(999, 1000), *rest),
    "twice the clones": lambda odds, rate, others, *rest: HIDDEN(odds, rate, 3 * others + 2, *rest),
    "a victim with the root of its odds": lambda odds, rate, others, factor, ignored: (
        HIDDEN(Fraction(math.sqrt(odds)), rate, others, factor, ignored)
        if factor**2 < odds
        else Fraction(0)
    ),
}
HIDDEN = amplify.hidden_delta


@pytest.mark.parametrize("slip", SLIPS)
def test_a_wrong_count_of_clones_is_caught(slip, monkeypatch):
    monkeypatch.setattr(amplify, "hidden_delta", SLIPS[slip])
    event = Shuffled(RandomizedResponse(ONE, 2), 5)
    assert not all(
        is_at_most(worst(response(ONE, 2), 5, part), shuffled_delta(event, part).upper)
        for part in PARTS
    )


def test_a_lower_bound_of_too_few_others_is_caught(monkeypatch):
    lone = amplify.lone_delta
    monkeypatch.setattr(
        amplify,
        "lone_delta",
        lambda high, low, others, factor: lone(high, low, others // 2, factor),
    )
    event = Shuffled(RandomizedResponse(ONE, 2), 5)
    assert not is_at_most(shuffled_delta(event, 0).lower, worst(response(ONE, 2), 5, Fraction(0)))


# --- shuffles, many


@pytest.mark.parametrize(
    ("event", "epsilon"),
    [
        (RandomizedResponse(Fraction(4), 2), 0.034280),
        (PureEvent(Fraction(4), REPLACE), 0.049307),
    ],
    ids=["Feldman, McMillan, Talwar 2023", "Feldman, McMillan, Talwar 2021"],
)
def test_a_million_reports_hide_as_the_papers_say(event, epsilon):
    assert shuffled(Shuffled(event, 10**6), "1e-6").upper == pytest.approx(epsilon, rel=3e-5)


def test_the_closed_form_is_that_of_the_paper_and_looser():
    event = Shuffled(PureEvent(Fraction(4), REPLACE), 10**6)
    e = math.exp(4)
    paper = math.log(1 + (e - 1) / (e + 1) * (8 * math.sqrt(e * math.log(4e6) / 1e6) + 8 * e / 1e6))
    assert (
        float(clone_bound(event, "1e-6"))
        == pytest.approx(paper, rel=1e-12)
        == pytest.approx(0.20099, rel=1e-4)
    )
    for epsilon0, reports in ((Fraction(1, 2), 10**3), (Fraction(1), 10**4), (Fraction(3), 10**5)):
        small = Shuffled(PureEvent(epsilon0, REPLACE), reports)
        assert clone_bound(small, "1e-4") > shuffled(small, "1e-4").upper


@pytest.mark.parametrize(
    ("epsilon0", "reports", "delta"),
    [(8, 10**4, "1e-6"), (1, 100, "1e-6"), (1, 10**6, 0), (10**9, 10**9, "1e-3")],
)
def test_the_closed_form_is_refused_where_it_is_not_proved(epsilon0, reports, delta):
    with pytest.raises(InvalidDeclaration, match="closed form"):
        clone_bound(Shuffled(RandomizedResponse(Fraction(epsilon0), 2), reports), delta)


@given(
    st.fractions(min_value=Fraction(1, 100), max_value=8),
    st.integers(1, 3000),
    st.sampled_from(["1e-2", "1e-5", "1e-9"]),
)
@settings(deadline=None)
def test_both_ends_of_a_shuffle_agree_with_its_delta(epsilon0, reports, delta):
    event = Shuffled(RandomizedResponse(epsilon0, 2), reports)
    found = shuffled(event, delta)
    assert 0 <= found.lower <= found.upper <= math.nextafter(float(epsilon0), 99)
    assert shuffled_delta(event, found.upper).upper <= float(delta) * (1 + 1e-6)
    assert found.lower == 0 or shuffled_delta(event, found.lower).lower >= float(delta) * (1 - 1e-6)


@pytest.mark.parametrize(
    "local", [None, lambda epsilon0: RandomizedResponse(epsilon0, 3)], ids=["any", "response"]
)
def test_what_is_bought_for_a_shuffle_costs_at_most_what_was_wanted(local):
    wanted = ApproxDP(Fraction(1, 5), MILLIONTH)
    epsilon0 = before_shuffling(10**4, wanted, local)
    make = local or (lambda epsilon: PureEvent(epsilon, REPLACE))
    assert shuffled(Shuffled(make(epsilon0), 10**4), MILLIONTH).upper <= float(wanted.epsilon) * (
        1 + 1e-6
    )
    assert shuffled(
        Shuffled(make(epsilon0 * Fraction(1001, 1000)), 10**4), MILLIONTH
    ).upper > float(wanted.epsilon)


def test_a_shuffle_bought_too_dear_is_caught(monkeypatch):
    wanted = ApproxDP(Fraction(1, 5), MILLIONTH)
    monkeypatch.setattr(
        amplify,
        "hidden_delta",
        lambda odds, rate, others, *rest: HIDDEN(odds, rate, 2 * others, *rest),
    )
    epsilon0 = before_shuffling(10**4, wanted)
    monkeypatch.undo()
    assert shuffled(Shuffled(PureEvent(epsilon0, REPLACE), 10**4), MILLIONTH).upper > 1.01 * float(
        wanted.epsilon
    )


def test_what_cannot_be_hidden_has_its_limit():
    alone = Shuffled(RandomizedResponse(Fraction(2), 2), 1)
    exact = (math.exp(2) - math.exp(1)) / (math.exp(2) + 1)
    assert (
        shuffled_delta(alone, 1).lower
        == pytest.approx(exact)
        == pytest.approx(shuffled_delta(alone, 1).upper)
    )
    many = Shuffled(RandomizedResponse(Fraction(2), 2), 1000)
    assert (shuffled(many, 0).lower, shuffled(many, 0).upper) == (2, 2)
    assert (shuffled_delta(many, 2).lower, shuffled_delta(many, 2).upper) == (0, 0)
    assert shuffled(many, "0.9").upper == 0
    far = Shuffled(PureEvent(Fraction(10**9), REPLACE), 1000)
    assert (shuffled(far, "1e-6").lower, shuffled(far, "1e-6").upper) == (0, 10**9)
    assert (shuffled_delta(far, 5).upper, shuffled_delta(far, 10**9).upper) == (1, 0)
    assert before_shuffling(1000, ApproxDP(ONE, Fraction(0))) == 1


def test_reports_beyond_those_that_are_summed_hide_no_worse(monkeypatch):
    event = Shuffled(RandomizedResponse(ONE, 2), 500)
    whole = shuffled_delta(event, "0.1")
    monkeypatch.setattr(amplify, "_MOST", 400)
    assert shuffled_delta(event, "0.1").upper > whole.upper
    assert shuffled_delta(event, "0.1").lower == 0


@pytest.mark.parametrize("delta", [-1, 1, 2, "nan", None, "1/0", -1e-300])
def test_a_delta_that_is_no_chance_is_refused(delta):
    event = Shuffled(RandomizedResponse(ONE, 2), 10)
    for ask in (shuffled, clone_bound):
        with pytest.raises(InvalidNumber):
            ask(event, delta)


def test_an_epsilon_that_is_no_bound_is_refused():
    for design in DESIGNS:
        with pytest.raises(InvalidNumber):
            sampled_delta(design, design.relation, Fraction(-1), profile)
        assert whole_epsilon(design, Fraction(0)) == 0
    with pytest.raises(InvalidNumber):
        shuffled_delta(Shuffled(RandomizedResponse(ONE, 2), 10), -1)
    for wanted in (ApproxDP(Fraction(0), MILLIONTH), ApproxDP(ONE, ONE)):
        with pytest.raises(InvalidNumber):
            before_shuffling(10, wanted)
