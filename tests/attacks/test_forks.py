# SPDX-License-Identifier: Apache-2.0
"""Attack on a process that forks: children that inherit a pool of random bytes answer with the same
noise.
"""

import subprocess
import sys

import pytest

from tests.architecture.structure import ROOT

FORK = """
import os, sys
import numpy as np
from sfumato.noise import SYSTEM, DiscreteLaplace

class Buffered:
    # a naive source: a pool of the operating system's bytes, refilled when it is used up
    def __init__(self):
        self.pool = b""
    def take(self, size):
        while len(self.pool) < size:
            self.pool += os.urandom(1 << 16)
        taken, self.pool = self.pool[:size], self.pool[size:]
        return taken
    def bits(self, count):
        return int.from_bytes(self.take((count + 7) // 8), "little") >> -count % 8
    def fill(self, buffer):
        buffer[:] = np.frombuffer(self.take(buffer.size), np.uint8)

def answers(source, shape):
    noise = DiscreteLaplace(10**12)
    noise.sample(5000, source), noise.sample_one(source)
    outlet, inlet = os.pipe()
    for exact in (1000, 2000):
        if os.fork() == 0:
            os.write(inlet, b"%d\\n" % (exact + noise.sample(shape, source).ravel()[0]))
            os._exit(0)
    for _ in range(2):
        os.wait()
    return sorted(int(line) for line in os.read(outlet, 4096).split())

source = {"ours": SYSTEM, "naive": Buffered()}[sys.argv[1]]
print(*answers(source, int(sys.argv[2])))
"""


def answers_of_two_children(source: str, shape: int) -> list[int]:
    """What two processes forked after the first draws answer about 1000 and about 2000."""
    run = subprocess.run(
        [sys.executable, "-c", FORK, source, str(shape)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(word) for word in run.stdout.split()]


@pytest.mark.parametrize("shape", [1, 3000])
def test_forked_children_repeat_no_noise(shape: int) -> None:
    # with the same noise twice, the difference of the answers is that of the exact ones
    low, high = answers_of_two_children("naive", shape)
    assert high - low == 1000
    low, high = answers_of_two_children("ours", shape)
    # by chance with a probability below 1e-12
    assert high - low != 1000
