# SPDX-License-Identifier: Apache-2.0
"""The same bits give the same noise on every processor path: no float rounding and no vector unit
has a part in it.
"""

import json
import os
import subprocess
import sys

import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

from tests.architecture.structure import ROOT
from tests.noise import replayed

# What each sampler draws from the replayed bits of ``tests.noise.replayed``. These change only in a
# release that says so in its change log; ``python -m tests.noise.replayed`` prints the new ones.
GOLDEN = {
    "laplace": "cd5fd76fe59ea6c1",
    "gaussian": "8e090f04d780b7c6",
    "geometric": "4d57b1608827af8b",
    "staircase": "be6fcef6953609a2",
    "truncated": "6670234f64ac3fc3",
    "binomial": "de43cd300fddbec3",
    "skellam": "d20adab3262f658a",
    "coins": "6e2b086e18ac7ea6",
    "uniform": "33e005b3d7ab1ed6",
    "permutation": "2269e6fedfadd42c",
    "subset": "005f797b5b9e626b",
    "exponential": "976ca89970dc7bea",
    "permute and flip": "ac6490d5eb32f01a",
}
# numpy's own list of the paths that it has compiled, as far as this processor has them
PATHS = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]


def on_this_processor_without(disabled: list[str]) -> tuple[list[str], dict[str, str]]:
    """The features that numpy says it uses, and the hashes, in a process of its own."""
    environment = os.environ | {"NPY_DISABLE_CPU_FEATURES": " ".join(disabled)}
    run = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.noise.replayed"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(run.stdout)
    return found["features"], found["hashes"]


def test_replayed_bits_give_the_noise_of_this_release() -> None:
    assert replayed.hashes() == GOLDEN


@pytest.mark.parametrize("kept", range(len(PATHS) + 1))
def test_every_path_of_the_processor_gives_the_same_noise(kept: int) -> None:
    """With the first ``kept`` of the paths of this processor.

    With none, numpy runs its baseline.
    """
    features, hashes = on_this_processor_without(PATHS[kept:])
    assert not set(PATHS[kept:]) & set(features)
    assert set(PATHS[:kept]) <= set(features)
    assert hashes == GOLDEN


def test_the_hash_notices_a_single_draw() -> None:
    values = list(range(1000))
    other = [*values[:-1], -999]
    assert replayed.hashed(values) != replayed.hashed(other)
    assert replayed.hashed(values) == replayed.hashed(float(each) for each in values)
