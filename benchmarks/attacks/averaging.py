# SPDX-License-Identifier: Apache-2.0
"""Averaging.

Given: one question, 50 times.
Broken: the mean of the answers is exact, and little is spent.
Right: the same answer, or a charge each, or an end.
Source: Dinur and Nissim (PODS 2003).
"""

from benchmarks.attacks import questions
from benchmarks.attacks.case import Case, Seen, judged, refused

TIMES = 50


def _sfumato() -> Seen:
    import sfumato as sf

    with questions.session({"x": [1] * 100}, x=sf.Integer(0, 5)) as opened:
        answers = {opened.query(questions.ALL, epsilon=1).bytes for _ in range(TIMES)}
        spent = opened.budget.spent
    seen = f"{len(answers)} answer of {TIMES}, epsilon {spent}"
    return judged(holds=len(answers) == 1 and spent == "1", seen=seen)


def _opendp() -> Seen:
    from opendp.mod import OpenDPException  # type: ignore[import-not-found]

    dp = questions.opendp()
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    composed = dp.c.make_adaptive_composition(*space, dp.max_divergence(), d_in=1, d_mids=[1.0])
    queries, count = composed(100), questions.opendp_count(1.0)
    queries(count)
    return refused(lambda: queries(count), OpenDPException)


def _diffprivlib() -> Seen:
    from diffprivlib import BudgetAccountant  # type: ignore[import-not-found]
    from diffprivlib.utils import BudgetError  # type: ignore[import-not-found]

    account = BudgetAccountant(epsilon=1)
    questions.diffprivlib_count(100, 1, accountant=account)
    return refused(lambda: questions.diffprivlib_count(100, 1, accountant=account), BudgetError)


def _pipelinedp() -> Seen:
    result = questions.pipelinedp([(row, "a", 1) for row in range(100)], "COUNT")
    read = {str(list(result)) for _ in range(TIMES)}
    return judged(holds=len(read) == 1, seen=f"{len(read)} answer of {TIMES}, local backend")


def _python_dp() -> Seen:
    count = questions.pydp("Count", 1.0)
    count.add_entries([1] * 100)
    count.result()
    return refused(count.result, RuntimeError)


def _smartnoise() -> Seen:
    reader = questions.smartnoise({"x": [1] * 100}, x={"type": "int"})
    for _ in range(2):
        reader.execute(questions.ALL)
    spent = float(reader.odometer.spent[0])
    return judged(holds=spent >= 2, seen=f"two answers, epsilon {spent:g} counted, no limit")


def _tumult() -> Seen:
    from tmlt.analytics import PureDPBudget  # type: ignore[import-not-found]

    opened, query = questions.tumult({"x": [1] * 100}, 1)
    opened.evaluate(query.count(), PureDPBudget(1))
    return refused(lambda: opened.evaluate(query.count(), PureDPBudget(1)), RuntimeError)


CASE = Case(
    __doc__,
    {
        "sfumato": _sfumato,
        "opendp": _opendp,
        "diffprivlib": _diffprivlib,
        "pipelinedp": _pipelinedp,
        "python-dp": _python_dp,
        "smartnoise": _smartnoise,
        "tumult": _tumult,
    },
)
