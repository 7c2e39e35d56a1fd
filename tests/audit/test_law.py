# SPDX-License-Identifier: Apache-2.0
"""Laws of our mechanisms against those of ``accounting.laws``, which share no code with them."""

import importlib
from collections import defaultdict
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq

from sfumato.audit.explore import ONE, Explored
from sfumato.audit.law import Effort, is_whole, law_by_formula, law_of, paths_needed
from sfumato.audit.verdict import Verdict
from sfumato.audit.verify import verify
from sfumato.errors import InvalidDeclaration
from sfumato.mechanisms import (
    SelectionMechanism,
    exponential,
    gaussian,
    laplace,
    permute_and_flip,
    report_noisy_max,
    staircase,
    vector,
)
from sfumato.mechanisms.ladder import ladder
from sfumato.mechanisms.response import randomized_response
from sfumato.mechanisms.sparse import sparse_vector
from sfumato.mechanisms.threshold import (
    ThresholdMechanism,
    threshold_gaussian,
    threshold_geometric,
    threshold_laplace,
)
from sfumato.noise import DiscreteLaplace
from sfumato.privacy import Distance, Norm, Relation, Repeated, Rule
from tests.accounting import laws

LAW = importlib.import_module("sfumato.audit.law")
EFFORT = Effort(30_000, ONE >> 22)
ONE_STEP = Distance(Norm.LINF, Fraction(1))
L1, L2 = Distance(Norm.L1, Fraction(2)), Distance(Norm.L2, Fraction(1))
REPLACED = Distance(Norm.L1, Fraction(2), Relation.REPLACE_ONE)


def noise(mechanism):
    return laws.laplace(mechanism.noise.scale)


def added(law, *exact):
    return {
        (tuple, key): mass
        for key, mass in laws.together(*(laws.shifted(law, each) for each in exact)).items()
    }


def keys(law, *names):
    """Thresholded keys as the mappings that a release gives."""
    return {
        (
            dict,
            tuple(
                (name, value) for name, value in zip(names, each, strict=True) if value is not None
            ),
        ): mass
        for each, mass in law.items()
    }


def winners(law, *, gap):
    names = ((key if gap else (key, None)) for key in law)
    return {
        f"Winner(index={i}, gap={g})": mass
        for (i, g), mass in zip(names, law.values(), strict=True)
    }


def verdicts(law):
    return {
        str([(each != "below", each if isinstance(each, int) else None) for each in key]): mass
        for key, mass in law.items()
    }


def said(kind):
    """How the outcomes of a kind are named in the laws above."""
    if kind == "max":
        return lambda key: str(key[1])
    if kind == "stream":
        return lambda key: str([(each[1].above, each[1].gap) for each in key[1]])
    return lambda key: key


def agrees(explored: Explored, law, name) -> bool:
    """Every reached mass is within the true law, and together they are all but the rest."""
    masses = defaultdict(lambda: (0, 0))
    for key, (low, high) in explored.masses.items():
        masses[name(key)] = low, high
    if explored.rest > ONE >> 15:
        return False
    with ctx.workprec(200):
        return all(
            bool(arb(fmpq(low, ONE)) <= law.get(key, arb(0)) + laws.SLACK)
            and bool(law.get(key, arb(0)) <= arb(fmpq(high + explored.rest, ONE)) + laws.SLACK)
            for key, (low, high) in masses.items()
        )


LEVEL = threshold_laplace(2, 4, "0.01", Relation.ADD_REMOVE)
BELL = threshold_gaussian(2, 1, "0.01", Relation.ADD_REMOVE)
CUT = threshold_geometric(2, 3, "0.01", Relation.ADD_REMOVE)
CUT_LAW = laws.laplace(CUT.noise.whole.scale, (CUT.noise.lower, CUT.noise.upper))
MAX, GAP = report_noisy_max(ONE_STEP, 3), report_noisy_max(ONE_STEP, 3, gap=True)
STREAM = sparse_vector(ONE_STEP, 4, threshold=10, positives=1)
TOLD = sparse_vector(ONE_STEP, 4, threshold=10, positives=1, gap=True)
SOME = sparse_vector(ONE_STEP, 4, threshold=10, positives=2)
SHOW = {"a": 3, "b": 0, "c": 1}
THIRDS = [0, 2, 3]
CASES = {
    "laplace": (laplace(L1, 2), L1, (3, -1), added(laws.laplace(Fraction(1)), 3, -1)),
    "gaussian": (gaussian(L2, 1), L2, (0, 2), added(laws.gaussian(Fraction(1, 2)), 0, 2)),
    "staircase": (
        staircase(Distance(Norm.LINF, Fraction(3)), 2),
        Distance(Norm.LINF, Fraction(3)),
        (5,),
        added(laws.staircase(Fraction(2), 3, 1), 5),
    ),
    "vector": (vector(L1, 2, epsilon=4), L1, (1, 2), added(laws.laplace(Fraction(1, 2)), 1, 2)),
    "threshold": (
        LEVEL,
        ONE_STEP,
        SHOW,
        keys(laws.thresholded((3, 0, 1), noise(LEVEL), LEVEL.threshold), "a", "b", "c"),
    ),
    "threshold of pairs": (
        BELL,
        ONE_STEP,
        (("a", 3),),
        keys(laws.thresholded((3,), laws.gaussian(BELL.noise.sigma_squared), BELL.threshold), "a"),
    ),
    "truncated": (
        CUT,
        ONE_STEP,
        SHOW,
        keys(laws.thresholded((3, 0, 1), CUT_LAW, CUT.threshold), "a", "b", "c"),
    ),
    "max": (MAX, ONE_STEP, (0, 1, 0), winners(laws.noisy_max((0, 1, 0), noise(MAX)), gap=False)),
    "max with gap": (
        GAP,
        ONE_STEP,
        (0, 1, 0),
        winners(laws.noisy_max((0, 1, 0), noise(GAP), range(30)), gap=True),
    ),
    "stream": (
        STREAM,
        ONE_STEP,
        (9, 11),
        verdicts(
            laws.sparse_vector(
                (-1, 1),
                laws.laplace(STREAM.threshold_noise.scale),
                laws.laplace(STREAM.query_noise.scale),
                1,
            )
        ),
    ),
    "stream with gap": (
        TOLD,
        ONE_STEP,
        (9, 11),
        verdicts(
            laws.sparse_vector(
                (-1, 1),
                laws.laplace(TOLD.threshold_noise.scale),
                laws.laplace(TOLD.query_noise.scale),
                1,
                range(40),
            )
        ),
    ),
    "verdicts of a long stream": (
        SOME,
        ONE_STEP,
        (9, 11, 10, 9),
        {
            tuple(each != "below" for each in key): mass
            for key, mass in laws.sparse_vector(
                (-1, 1, 0, -1),
                laws.laplace(SOME.threshold_noise.scale),
                laws.laplace(SOME.query_noise.scale),
                2,
            ).items()
        },
    ),
    "exponential": (
        exponential(ONE_STEP, 1),
        ONE_STEP,
        THIRDS,
        laws.exponential(THIRDS, Fraction(1, 2)),
    ),
    "permute and flip": (
        permute_and_flip(ONE_STEP, 1),
        ONE_STEP,
        THIRDS,
        laws.permute_and_flip(THIRDS, Fraction(1, 2)),
    ),
    "response": (randomized_response("1.5", 3), REPLACED, 1, laws.response(1, Fraction(3, 2), 3)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_law_is_that_of_the_code_that_releases(name):
    mechanism, distance, given, law = CASES[name]
    assert agrees(
        law_of(mechanism, mechanism.event(distance), given, EFFORT), law, said(name.split()[0])
    )


class Strict(ThresholdMechanism):
    def release(self, counts, entropy=None):
        shown = ThresholdMechanism.release(self, counts, entropy)
        return {key: value for key, value in shown.items() if value > self.threshold}


def test_a_change_of_the_code_changes_its_law():
    mechanism, distance, given, law = CASES["threshold"]
    strict = Strict(mechanism.noise, mechanism.threshold, mechanism.keys)
    assert not agrees(law_of(strict, strict.event(distance), given, EFFORT), law, said("threshold"))
    mechanism, distance, given, law = CASES["max"]
    halved = type(mechanism)(DiscreteLaplace(mechanism.noise.scale / 2))
    assert not agrees(law_of(halved, halved.event(distance), given, EFFORT), law, said("max"))


@pytest.mark.parametrize("name", ["exponential", "permute and flip"])
def test_a_wrong_formula_is_noticed(name, monkeypatch):
    mechanism, distance, given, law = CASES[name]
    honest = LAW.exp_scaled
    monkeypatch.setattr(
        LAW,
        "exp_scaled",
        lambda numerator, denominator, bits: honest(2 * numerator, denominator, bits),
    )
    assert not agrees(law_of(mechanism, mechanism.event(distance), given, EFFORT), law, said(name))


def test_choices_by_weight_are_bounded_to_the_last_places():
    for rule in Rule:
        mechanism = SelectionMechanism(rule, Fraction(1, 3))
        explored = law_of(
            mechanism, mechanism.event(ONE_STEP), [0, 5, Fraction(1, 2), -100], EFFORT
        )
        assert explored.rest < ONE >> 150
        assert all(high - low < ONE >> 150 for low, high in explored.masses.values())


def test_too_many_candidates_and_other_events_are_refused():
    mechanism = permute_and_flip(ONE_STEP, 1)
    with pytest.raises(InvalidDeclaration, match="31 candidates"):
        law_of(mechanism, mechanism.event(ONE_STEP), [0] * 31, EFFORT)
    with pytest.raises(InvalidDeclaration, match="No exact output law for Repeated") as error:
        law_of(mechanism, Repeated(mechanism.event(ONE_STEP), 2), [0], EFFORT)
    assert "audit" in error.value.remedy


# of each kind: one cell, two, three noises, a stream that may stop early
NEEDED = {
    "one cell": (laplace(Distance(Norm.L1, Fraction(1)), 1), (0,)),
    "two cells": (laplace(Distance(Norm.L1, Fraction(1)), 4), (0, 0)),
    "noisy max": (report_noisy_max(ONE_STEP, 4), (0, 0)),
    "sparse vector": (sparse_vector(ONE_STEP, 12, threshold=5, positives=1), (6, 4)),
}


@pytest.mark.parametrize("name", NEEDED)
def test_what_an_exploration_needs_is_known_beforehand(name):
    mechanism, given = NEEDED[name]
    distance = Distance(Norm.L1, Fraction(1)) if "cell" in name else ONE_STEP
    event, aim = mechanism.event(distance), ONE >> 24
    needed = paths_needed(mechanism, event, given, aim)
    assert law_of(mechanism, event, given, Effort(int(1.25 * needed) + 50, aim)).rest <= aim
    assert law_of(mechanism, event, given, Effort(int(needed / 8), aim)).rest > aim


def test_a_formula_needs_no_paths():
    mechanism = exponential(ONE_STEP, 1)
    assert paths_needed(mechanism, mechanism.event(ONE_STEP), (0, 0), 0) == 0


def test_the_formula_of_a_stream_is_the_law_of_its_verdicts_alone():
    plain, gap = (
        sparse_vector(ONE_STEP, 12, threshold=5, positives=1, gap=each) for each in (False, True)
    )
    given, longer = (6, 4), (6, 6, 4)
    by_formula = law_by_formula(plain, plain.event(ONE_STEP), given)
    explored = law_of(plain, plain.event(ONE_STEP), given, Effort(60_000, ONE >> 40))
    assert sorted(high for _, high in by_formula.masses.values()) == pytest.approx(
        sorted(high for _, high in explored.masses.values()), rel=1e-6
    )
    assert law_by_formula(gap, gap.event(ONE_STEP), given) is None
    assert [is_whole(each.event(ONE_STEP), longer) for each in (plain, gap)] == [True, False]
    assert is_whole(gap.event(ONE_STEP), given)


@pytest.mark.parametrize("width", [0, 1, 3])
def test_a_ladder_is_in_proportion_to_its_rungs(width):
    mechanism = ladder(ONE_STEP, 1)
    law = law_of(mechanism, mechanism.event(ONE_STEP), (5, width), EFFORT)
    rungs = {0: 0}
    distance = 0
    for rung in range(1, 8):
        for _ in range(width + rung - 1):
            distance += 1
            rungs[distance] = rungs[-distance] = rung
    with ctx.workprec(300):
        # the closed form of the sum of all weights: mechanisms/ladder.proof.md
        q = (-arb(1) / 2).exp()
        total = 1 + 2 * width * q / (1 - q) + 2 * q**2 / (1 - q) ** 2
        for distance, rung in rungs.items():
            low, high = law.masses[5 + distance]
            assert arb(low) <= q**rung / total * ONE <= arb(high)
            assert high - low < ONE >> 20
    assert 0 < law.rest < ONE >> 20


def test_a_rung_of_one_integer_too_many_is_found():
    # as if an edge could change the number of triangles by one more than the width
    wide = verify(ladder(ONE_STEP, 2), ONE_STEP, neighbours=[((0, 1), (3, 1))])
    assert wide.verdict is Verdict.VIOLATED
