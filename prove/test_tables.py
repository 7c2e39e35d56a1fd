# SPDX-License-Identifier: Apache-2.0
"""Every column of the tables of many more laws in ball arithmetic, and many more verdicts close to
the curve.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from sfumato.noise import sampler
from sfumato.noise.curves import Exponential, Parabola
from sfumato.noise.rejection_sampler import Cells
from tests.noise.columns import Curve, F, faults, truth
from tests.noise.test_decay import UNIT, worst_error
from tests.noise.test_doubt import wrong_verdicts

LAWS = 200


def random_laws(seed: int) -> list[tuple[Curve, F]]:
    """Widths from 2^-8 to 2^52, as likely in each octave: rationals with denominators up to
    10^9.
    """
    random = np.random.default_rng(seed)
    found = []
    for _ in range(LAWS):
        under = int(random.integers(1, 10**9))
        width = Fraction(max(int(2.0 ** random.uniform(-8, 52) * under), 1), under)
        for curve in (Exponential(width, bool(random.integers(2))), Parabola(width * width)):
            found.append((curve, truth(curve)))
    return found


def test_every_column_of_many_laws(report: Callable[[str], None]) -> None:
    columns = 0
    for curve, f in random_laws(1):
        for table in (sampler._small(curve), sampler._large.__wrapped__(curve)):
            assert list(faults(table, f)) == []
            columns += len(table._starts_list)
    report(
        f"{columns} columns of {4 * LAWS} tables cover their curves, and no easy cell is above them"
    )


def test_verdicts_of_many_laws(report: Callable[[str], None]) -> None:
    points = 0
    for curve, f in random_laws(2):
        if curve.width >= 16:
            # a word of 64 bits holds a cell and an offset
            bits = min(19, 64 - curve.shift(8))
            fine = Cells(curve, bits=bits, fineness=8)
            assert wrong_verdicts(fine, f, seed=3, points=400) == []
            points += 4 * 400
    report(f"{points} verdicts on points close to the curve are right")


def test_the_decay_at_many_points(report: Callable[[str], None]) -> None:
    t = np.random.default_rng(4).integers(0, 24 * UNIT, 3_000_000)
    worst = worst_error(t)
    assert worst <= 8
    report(f"decay: worst error {worst:.2f} of the stated 8 in {len(t)} points")
