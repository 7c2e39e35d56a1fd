# SPDX-License-Identifier: Apache-2.0
"""``sfumato audit --function``: a floating-point Laplace of one's own is caught.

Every slip has its sentence.
"""

import json
from pathlib import Path

import pytest

from sfumato.cli.audit_function import claim_of
from sfumato.privacy import ApproxDP, PureDP
from tests.contracts.shell import Shell

NOISE = """
import numpy as np
from sfumato.noise import DiscreteLaplace

SCALE = 1.0
generator = np.random.default_rng()

def floating(count):
    return count + generator.laplace(scale=SCALE)

def exact(count):
    return count + DiscreteLaplace(1).sample_one()
"""


@pytest.fixture
def noise(shell: Shell) -> str:
    path = Path("own_noise.py")
    path.write_text(NOISE, encoding="utf-8")
    return str(path)


def test_a_floating_laplace_of_ones_own_is_caught(shell: Shell, noise: str) -> None:
    ran = shell.run("audit", "--function", f"{noise}:floating", "--epsilon", "1", "--runs", "6000")
    assert ran.code == 3 and "floating: VIOLATED" in ran.out and "lowest set bit" in ran.out
    assert "Do not release anything" in ran.err


def test_exact_noise_is_not_refuted(shell: Shell, noise: str) -> None:
    arguments = ("--epsilon", "1", "--runs", "1000", "--input", "5", "6", "--format", "json")
    ran = shell.run("audit", "--function", f"{noise}:exact", *arguments)
    assert ran.code == 0 and json.loads(ran.out)["verdict"] == "UNDECIDED"


def test_the_claim_is_what_the_options_say() -> None:
    assert (claim_of("1", None), claim_of("1", "0")) == (PureDP(1), PureDP(1))
    assert claim_of("0.5", "1e-2") == ApproxDP("0.5", "1e-2")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--function", "nowhere.py:floating", "--epsilon", "1"], "no such file"),
        (["--function", "floating", "--epsilon", "1"], "no such file"),
        (["--function", "own_noise.py:missing", "--epsilon", "1"], "floating"),
        (["--function", "own_noise.py:SCALE", "--epsilon", "1"], "no function"),
        (["--function", "own_noise.py:floating"], "without a claim"),
        (
            ["--function", "own_noise.py:floating", "--epsilon", "1", "--input", "0", "one"],
            "not JSON",
        ),
        (["--function", "own_noise.py:floating", "--epsilon", "-1"], "epsilon"),
        (["--function", "own_noise.py:floating", "--mechanism", "laplace"], "name one of them"),
        (["--epsilon", "1"], "claim of --function"),
    ],
)
def test_wrong_use_is_named(shell: Shell, noise: str, arguments: list[str], said: str) -> None:
    ran = shell.run("audit", "--runs", "10", *arguments)
    assert ran.code == 2 and said in ran.err
