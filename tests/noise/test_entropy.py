# SPDX-License-Identifier: Apache-2.0
"""Bits come from the operating system, each time anew, and from nowhere else."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato
from sfumato.noise import SYSTEM, Entropy
from sfumato.noise.entropy import below, token
from sfumato.testing import Replay, assert_follows
from tests.noise.truth import every_path

SOURCE = Path(sfumato.__file__).parent
FORBIDDEN = re.compile(r"^(random|secrets|uuid|ssl|numpy\.random|scipy\.stats)(\.|$)")
FORK = """
import os
from sfumato.noise.entropy import SYSTEM

class Buffered:
    def __init__(self):
        self.pool = SYSTEM.bits(4096)
    def bits(self, count):
        value, self.pool = self.pool % 2**count, self.pool >> count
        return value

def streams(source):
    outlet, inlet = os.pipe()
    for _ in range(2):
        if os.fork() == 0:
            os.write(inlet, b"%064x" % source.bits(256))
            os._exit(0)
    for _ in range(2):
        os.wait()
    return [os.read(outlet, 64).decode() for _ in range(2)] + ["%064x" % source.bits(256)]

print(*streams(SYSTEM))
print(*streams(Buffered()))
"""


def modulo(bound: int, entropy: Entropy) -> int:
    """The classical slip: the lowest values come too often."""
    return entropy.bits((bound - 1).bit_length()) % bound


def is_uniform(sampler, bound: int) -> bool:
    """Whether every value below ``bound`` has the very same mass over all bit strings."""
    law, rest = every_path(lambda entropy: sampler(bound, entropy), 2**-14)
    return sorted(law) == list(range(bound)) and set(law.values()) == {(1 - rest) / bound}


@given(st.integers(0, 300))
@settings(deadline=None)
def test_system_bits_are_those_of_os_urandom(count: int) -> None:
    given_out: list[bytes] = []
    real = os.urandom

    def watched(size: int) -> bytes:
        given_out.append(real(size))
        return given_out[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", watched)
        value = SYSTEM.bits(count)
    (raw,) = given_out
    assert len(raw) == (count + 7) // 8
    assert value == int.from_bytes(raw, "little") >> (8 * len(raw) - count)
    assert 0 <= value < 2**count


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 6, 7, 8, 11, 16])
def test_below_is_exactly_uniform(bound: int) -> None:
    assert is_uniform(below, bound)


@pytest.mark.parametrize("bound", [3, 5, 6, 7, 11])
def test_uniformity_notices_a_remainder_instead_of_a_rejection(bound: int) -> None:
    assert not is_uniform(modulo, bound)


def follows_six(draws: list[int]) -> None:
    """Fails unless the draws are uniform below six; sure to notice the remainder of eight."""
    assert_follows(draws, lambda x: (x + 1) / 6, notices=lambda x: [2 / 8, 4 / 8, 5 / 8, 6 / 8, 7 / 8, 1][x])


@pytest.mark.parametrize("entropy", [SYSTEM, Replay(5)], ids=["system", "replay"])
def test_below_is_uniform_under_real_bits(entropy: Entropy) -> None:
    follows_six([below(6, entropy) for _ in range(3000)])
    with pytest.raises(AssertionError, match="from the stated law"):
        follows_six([modulo(6, entropy) for _ in range(3000)])


@given(st.integers(1, 10**60))
@settings(deadline=None)
def test_below_stays_below(bound: int) -> None:
    assert 0 <= below(bound, SYSTEM) < bound


def test_processes_after_a_fork_draw_different_bits() -> None:
    output = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True).stdout
    system, buffered = (line.split() for line in output.splitlines())
    assert len(set(system)) == 3
    # the same check sees a source with a state: all three draw the same
    assert len(set(buffered)) == 1


def test_tokens_are_128_bits_and_never_the_same() -> None:
    tokens = {token() for _ in range(1000)}
    assert len(tokens) == 1000
    assert all(re.fullmatch(r"[0-9a-f]{32}", each) for each in tokens)
    assert token(Replay(3)) == token(Replay(3))


def strays(source: str) -> list[str]:
    """What a file uses as randomness besides ``noise.entropy``."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if FORBIDDEN.match(alias.name)]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [name for name in names if FORBIDDEN.match(name)]
        elif isinstance(node, ast.Attribute) and node.attr in ("urandom", "getrandom", "random", "default_rng"):
            found.append(ast.unparse(node))
    return found


def test_nothing_shipped_takes_randomness_from_elsewhere() -> None:
    found = {
        path.relative_to(SOURCE).as_posix(): strays(path.read_text(encoding="utf-8"))
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] != "testing"
    }
    assert {name: uses for name, uses in found.items() if uses} == {"noise/entropy.py": ["os.urandom"]}
    assert len(found) > 40


@pytest.mark.parametrize(
    "line",
    [
        "import random",
        "from random import gauss",
        "import secrets",
        "import numpy.random as r",
        "from numpy import random",
        "from numpy.random import default_rng",
        "import numpy as np\nnp.random.normal()",
        "import os\nos.getrandom(4)",
        "def f():\n    import uuid",
    ],
)
def test_the_search_for_randomness_finds_each_way_to_it(line: str) -> None:
    assert strays(line)
