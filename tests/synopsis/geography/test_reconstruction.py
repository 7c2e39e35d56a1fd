# SPDX-License-Identifier: Apache-2.0
"""An attacker who knows nine of ten persons in each block guesses the sex of the tenth.

The guarantee (epsilon, one person replaced) bounds his success by e^epsilon / (1 + e^epsilon).
Tables that are exact, rounded to a multiple of 3, or of swapped persons have no such bound.
"""

import math

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.synopsis.geography.census import census
from sfumato.synopsis.geography.spine import Spine
from sfumato.testing import assert_at_most

BLOCKS = 1500
EPSILON = 1


def test_the_tenth_person_of_a_block_is_protected_as_promised(tmp_path):
    secrets = np.random.default_rng(11).integers(0, 2, BLOCKS)
    block = np.repeat(np.arange(BLOCKS), 10)
    sex = np.tile([0, 0, 0, 0, 0, 1, 1, 1, 1, 1], BLOCKS)
    sex[9::10] = secrets
    frame = pa.table({"block": block, "sex": sex})
    columns = {"block": sf.Integer(0, BLOCKS - 1), "sex": sf.Integer(0, 1)}
    codes = [str(number) for number in range(BLOCKS)]
    spine = Spine("nation > block", pa.table({"nation": ["all"] * BLOCKS, "block": codes}))
    with sf.connect(
        {"people": sf.Table(frame, columns=columns)}, dataset="d", budget=sf.Budget(EPSILON),
        ledger=tmp_path / "l.db", relation=sf.ReplaceOne,
    ) as session:  # fmt: skip
        # the whole cost at the lowest level, the best for this attacker
        found = census(session, "people", spine, epsilon=EPSILON, tables={"block": ["sex"]})
    # five are known to be 0, and four to be 1; the blocks' noises are independent
    noisy = found.least_squares[1]
    score = (noisy[:, 1] - 4) - (noisy[:, 0] - 5)
    guesses = (score > 0).astype(int)
    bound = math.exp(EPSILON) / (1 + math.exp(EPSILON))
    right = int((guesses == secrets).sum())
    assert_at_most(right, BLOCKS, bound, notices=bound + 0.18)
    # what is published does not help him more
    published = found.counts[1][:, 1] - found.counts[1][:, 0]
    rounded = int(((published > -1).astype(int) == secrets).sum())
    assert_at_most(rounded, BLOCKS, bound, notices=bound + 0.18)
    # the same attack on exact tables, and on tables rounded to multiples of 3, always succeeds
    exact = np.bincount(block, weights=sex)
    assert ((exact - 4 > 0.5).astype(int) == secrets).all()
    assert ((np.rint(exact / 3) > 1).astype(int) == secrets).mean() > bound
    # and on tables in which one block in ten has swapped its tenth person with another
    swapped = secrets.copy()
    chosen = np.random.default_rng(12).permutation(BLOCKS)[: BLOCKS // 10]
    swapped[chosen] = swapped[np.roll(chosen, 1)]
    assert (swapped == secrets).mean() > bound
