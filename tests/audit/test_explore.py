# SPDX-License-Identifier: Apache-2.0
"""Explored laws against the sums of all outcomes in 200 bits (``accounting.laws``)."""

import importlib
import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq

from sfumato.audit.explore import (
    BITS,
    ONE,
    Explored,
    NoEntropy,
    Table,
    Tape,
    Watched,
    explore,
    paths_to,
    watched,
)
from sfumato.errors import InvalidDeclaration, WrongUse
from sfumato.mechanisms import laplace, vector
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Truncated
from sfumato.privacy import Distance, Norm
from tests.accounting import laws

EXPLORE = importlib.import_module("sfumato.audit.explore")
LAPLACE, NARROW = DiscreteLaplace(1), Truncated(DiscreteLaplace(2), -2, 3)


def first_above(tape: Tape):
    """How many draws it takes until one is positive, at most four, and that one: draws depend on
    draws.
    """
    noise = Watched(LAPLACE, tape)
    for count in range(4):
        x = noise.sample_one()
        if x > 0:
            return count, min(x, 3)
    return None


def first_above_law():
    """The same, by hand."""
    one = laws.laplace(Fraction(1))
    with ctx.workprec(200):
        no = one.cdf(0)
        exact = [one.pmf(1), one.pmf(2), one.least(3)]
        law = {(count, x + 1): no**count * exact[x] for count in range(4) for x in range(3)}
        return law | {None: no**4}


def units(mass: int) -> arb:
    return arb(fmpq(mass, ONE))


def agrees(explored: Explored, law) -> bool:
    """Whether every reached mass is below the truth, and the truth below it and the rest."""
    masses = {key if key is None else key[1]: bounds for key, bounds in explored.masses.items()}
    with ctx.workprec(200):
        return all(
            bool(units(low) <= law[key] + laws.SLACK)
            and bool(law[key] <= units(high + explored.rest) + laws.SLACK)
            for key, (low, high) in masses.items()
        ) and bool(units(sum(high for _, high in masses.values())) >= 1 - units(explored.rest))


def run(program, tape, **effort):
    return explore(lambda: program(tape), tape, **effort)


@pytest.mark.parametrize(("paths", "aim"), [(1, 0), (50, 0), (5000, 0), (10**6, ONE >> 20)])
def test_explored_masses_are_bounds_of_the_masses_reached(paths, aim):
    explored = run(first_above, Tape(), paths=paths, aim=aim)
    assert agrees(explored, first_above_law())


def test_what_is_not_reached_is_counted(monkeypatch):
    explored = run(first_above, Tape(), paths=10**6, aim=ONE >> 20)
    assert 0 < explored.rest <= ONE >> 20
    assert run(first_above, Tape(), paths=20, aim=0).rest > ONE >> 6
    # a mutant that forgets a draw of each path claims to have reached what it did not
    honest = EXPLORE._mass

    def forgetful(tape):
        first = Tape()
        first.taken = tape.taken[:1]
        return honest(first)

    monkeypatch.setattr(EXPLORE, "_mass", forgetful)
    with pytest.raises(InvalidDeclaration, match="not probabilities"):
        run(first_above, Tape(), paths=10**6, aim=0)


def test_every_path_is_run_once_and_all_of_a_finite_law():
    seen = Counter()
    tape = Tape()
    noise = Watched(NARROW, tape)

    def program():
        drawn = tuple(noise.sample(2).tolist())
        drawn += (noise.sample_one(),) if drawn[0] == 3 else ()
        seen[drawn] += 1
        return drawn

    explored = explore(program, tape, paths=10**6, aim=0)
    pairs = [(x, y) for x in range(-2, 3) for y in range(-2, 4)]
    assert set(seen) == {*pairs, *((3, y, z) for y in range(-2, 4) for z in range(-2, 4))}
    assert set(seen.values()) == {1}
    # stated masses are floats: so near to 1 they add up
    assert explored.rest < ONE >> 48


def test_paths_are_counted_before_they_are_gone_through():
    # two fair coins and one that is certain, by hand: four paths of 1/4 each
    fair, certain = Table((0, 1), (ONE // 2,) * 2, (ONE // 2,) * 2), Table((0,), (ONE,), (ONE,))
    assert paths_to([fair, fair, certain], ONE >> 10) == 4
    # of a law with masses 3/4 and 1/4, the likeliest of two draws leave 7/16, then 1/16
    skewed = Table((0, 1), (3 * ONE // 4, ONE // 4), (3 * ONE // 4, ONE // 4))
    assert [paths_to([skewed] * 2, ONE * left // 16) for left in (7, 1, 0)] == [1, 3, 4]
    # what the table does not list is never reached
    assert paths_to([Table((0,), (ONE // 2,), (ONE // 2,))], ONE >> 10) == math.inf


def test_the_likeliest_draws_come_first():
    tape = Tape()
    noise = Watched(DiscreteGaussian(1), tape)
    first = []

    def program():
        first.append(tuple(noise.sample(2).tolist()))

    explore(program, tape, paths=9, aim=0)
    assert first[0] == (0, 0) and set(first) == {(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1)}


def test_all_noise_of_a_mechanism_is_watched():
    distance = Distance(Norm.L1, Fraction(1))
    mechanism = vector(distance, 2, epsilon=1)
    tape = Tape()
    copied = watched(mechanism, tape)
    assert copied.draw().tolist() == [0, 0] and len(tape.taken) == 2
    assert copied.additive.noise.scale == 1 and copied.cells == 2
    # the mechanism itself is as it was
    assert mechanism == vector(distance, 2, epsilon=1)


def test_drawing_beside_the_stated_noise_is_refused():
    @dataclass(frozen=True)
    class Beside:
        noise: DiscreteLaplace

        def draw(self, entropy):
            return DiscreteLaplace(self.noise.scale / 2).sample_one(entropy)

    tape = Tape()
    copied = watched(Beside(LAPLACE), tape)
    with pytest.raises(WrongUse, match="beside the noise laws"):
        explore(lambda: copied.draw(NoEntropy()), tape, paths=10, aim=0)
    with pytest.raises(WrongUse, match="beside the noise laws"):
        NoEntropy().fill(None)


def test_a_mechanism_without_fields_is_refused():
    with pytest.raises(InvalidDeclaration, match="function cannot be found"):
        watched(lambda x: x, Tape())


def test_noise_too_wide_is_refused():
    with pytest.raises(InvalidDeclaration, match="too wide"):
        Watched(laplace(Distance(Norm.L1, Fraction(1)), "1e-6").noise, Tape())


def test_masses_that_are_none_are_refused():
    for masses in ({0: (2, 1)}, {0: (-1, 0)}, {0: (ONE, ONE), 1: (1, 1)}):
        with pytest.raises(InvalidDeclaration, match="not probabilities"):
            Explored(masses)
    assert Explored({}).rest == 1 << BITS
