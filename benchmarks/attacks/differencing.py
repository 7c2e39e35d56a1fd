# SPDX-License-Identifier: Apache-2.0
"""A question about all, and the same about all but one."""

from collections.abc import Callable

from benchmarks.attacks import peers
from benchmarks.attacks.case import BROKEN, REFUSED, Case, Seen, judged

TRIES, EPSILON = 40, 0.25


def _apart(count: Callable[[int], float]) -> Seen:
    exact = sum(round(count(100) - count(99)) == 1 for _ in range(TRIES))
    return judged(holds=exact < 0.6 * TRIES, seen=f"{exact} of {TRIES} differences tell the row")


def _sfumato() -> Seen:
    import sfumato as sf
    from benchmarks.attacks.ours import asked, session

    def count(rows: int) -> float:
        given, price = {"x": range(rows)}, {"epsilon": EPSILON}
        return float(asked(given, "SELECT COUNT(*) AS n FROM t", price, x=sf.Integer(0, 99))[0][0])

    outcome, seen = _apart(count)
    if outcome == BROKEN:
        return outcome, seen
    done = 0
    with session({"x": list(range(100))}, epsilon=1, x=sf.Integer(0, 99)) as opened:
        try:
            while True:
                opened.query(f"SELECT COUNT(*) AS n FROM t WHERE x <> {done}", epsilon=EPSILON)
                done += 1
        except sf.errors.BudgetExceeded:
            return REFUSED, f"after {done} noisy counts; {seen}"


def _in_sql(rows: int) -> float:
    reader = peers.smartnoise({"x": range(rows)}, EPSILON, x={"type": "int"})
    return float(reader.execute("SELECT COUNT(*) AS n FROM t")[1][0])


CASE = Case(
    "Differencing",
    "COUNT(*) of 100 rows, and of all but one; epsilon 0.25 each",
    "the difference is the row",
    "noise in both, and an end",
    "Dinur and Nissim (PODS 2003)",
    {
        "sfumato": _sfumato,
        "opendp": lambda: _apart(peers.opendp_count(1 / EPSILON)),
        "diffprivlib": lambda: _apart(lambda rows: peers.diffprivlib_count(rows, EPSILON)),
        "python-dp": lambda: _apart(
            lambda rows: peers.pydp("Count", EPSILON).quick_result([1] * rows)
        ),
        "smartnoise": lambda: _apart(_in_sql),
    },
)
