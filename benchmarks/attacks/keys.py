# SPDX-License-Identifier: Apache-2.0
"""Groups of one.

Given: GROUP BY a text that one row alone has.
Broken: the text is shown.
Right: a threshold, paid for with a delta.
Source: Korolova et al. (WWW 2009).
"""

from collections.abc import Iterable

from benchmarks.attacks.case import Case, Seen, judged
from benchmarks.attacks.questions import asked, pipelinedp, smartnoise, tumult

ROWS = ["smith"] * 300 + ["secret"]
_TEXT = "SELECT x, COUNT(*) AS n FROM t GROUP BY x"


def _without_secret(keys: Iterable[object]) -> Seen:
    shown = list(keys)
    return judged(holds=shown == ["smith"], seen=f"shown: {', '.join(map(str, shown))}")


def _sfumato() -> Seen:
    import sfumato as sf

    rows = asked({"x": ROWS}, _TEXT, {"epsilon": 1, "delta": "1e-7"}, x=sf.Text())
    return _without_secret(row[0] for row in rows)


def _pipelinedp() -> Seen:
    rows = [(row, key, 1) for row, key in enumerate(ROWS)]
    return _without_secret(key for key, _ in pipelinedp(rows, "COUNT", public=None))


def _smartnoise() -> Seen:
    reader = smartnoise({"x": ROWS}, x={"type": "string"})
    return _without_secret(row[0] for row in reader.execute(_TEXT)[1:])


def _tumult() -> Seen:
    from tmlt.analytics import ApproxDPBudget  # type: ignore[import-not-found]

    opened, query = tumult({"x": ROWS}, 1, 1e-7)
    shown = opened.evaluate(query.get_groups(["x"]), ApproxDPBudget(1, 1e-7))
    return _without_secret(row["x"] for row in shown.collect())


CASE = Case(
    __doc__,
    {"sfumato": _sfumato, "pipelinedp": _pipelinedp, "smartnoise": _smartnoise, "tumult": _tumult},
    not_expressed=("python-dp",),
)
