# SPDX-License-Identifier: Apache-2.0
"""Medians of groups beside OpenDP's, their rank errors and time: a part of ``make bench-query``."""

import sys
from fractions import Fraction

from benchmarks.compare import Case, Kind, Peer, Unit, Work, at_most_times
from benchmarks.driver import ROOT
from benchmarks.report import bench

RESULTS = ROOT / "benchmarks" / "results" / "medians.json"
QUESTIONS, OPENDP = "questions", "opendp-polars"
ROWS = 10**6


def case(name: str, unit: Unit, most: Fraction, repetitions: int) -> Case:
    """Our work beside the same one of OpenDP, of which ours is at most this part."""
    peer = Peer("OpenDP", Work(OPENDP, name, n=ROWS), at_most_times(most))
    title = "medians by 20 areas, units of 5 rows, epsilon 0.2"
    return Case(title, unit, Work(QUESTIONS, name, n=ROWS), (peer,), repetitions=repetitions)


CASES = [
    case("medians", Unit("CPU s", 1, kind=Kind.CPU), Fraction(1, 10), 5),
    case("medians error", Unit("ranks off", 1, kind=Kind.VALUE), Fraction(7, 10), 5),
]


if __name__ == "__main__":
    bench(sys.argv[1:], CASES, (QUESTIONS, OPENDP), RESULTS)
