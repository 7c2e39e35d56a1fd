# SPDX-License-Identifier: Apache-2.0
"""How fast the noise is: ``make bench-noise``.

The bars are promises about a quiet machine; a bar that fails is reported, and is no error.
With words as arguments only the cases that hold one of them run, and nothing is written.
"""

import json
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from benchmarks.compare import Bar, Case, Peer, Row, Unit, Work, at_most, at_most_more, faster, line, rows
from benchmarks.driver import OURS, ROOT, Unavailable, Worker, measure, start

RESULTS = ROOT / "benchmarks" / "results" / "noise.json"
PEERS = ("numpy", "opendp", "diffprivlib", "python-dp")
REPETITIONS = 7

SAMPLE = Unit("ns a sample", 1e9, each=True)
CANDIDATE = Unit("ns a candidate", 1e9, each=True)
BIT = Unit("ns a bit", 1e9, each=True)
MICRO = Unit("us a call", 1e6)
MILLI = Unit("ms a call", 1e3)
MEMORY = Unit("MB above the output", 1e-6, memory=True)

SCALES = (0.1, 1, 16, 100, 1000, 10**6, 2**40)
LAWS = ("laplace", "gaussian")
# beside numpy's floats: Laplace and Gaussian, at each scale; 1/3 is: never more than 3 times as slow
_LARGE: dict[str, dict[float, int]] = {
    "laplace": {0.1: 4, 1: 4, 16: 4} | dict.fromkeys((100, 1000, 10**6, 2**40), Fraction(3, 2)),
    "gaussian": {0.1: 3, 1: 3, 16: 3, 100: 1, 1000: 1, 10**6: 1},
}
