# SPDX-License-Identifier: Apache-2.0
"""A group with one row."""

from collections.abc import Iterable

from benchmarks.attacks import peers
from benchmarks.attacks.case import Case, Seen, judged

ROWS = ["smith"] * 300 + ["secret"]
_TEXT = "SELECT x, COUNT(*) AS n FROM t GROUP BY x"


def _without_secret(keys: Iterable[object]) -> Seen:
    shown = list(keys)
    return judged(holds=shown == ["smith"], seen=f"shown: {', '.join(map(str, shown))}")


def _sfumato() -> Seen:
    import sfumato as sf
    from benchmarks.attacks.ours import asked

    rows = asked({"x": ROWS}, _TEXT, {"epsilon": 1, "delta": "1e-7"}, x=sf.Text())
    return _without_secret(row[0] for row in rows)


def _pipelinedp() -> Seen:
    rows = [(row, key, 1) for row, key in enumerate(ROWS)]
    return _without_secret(key for key, _ in peers.pipelinedp(rows, "COUNT", public=None))


def _smartnoise() -> Seen:
    reader = peers.smartnoise({"x": ROWS}, x={"type": "string"})
    return _without_secret(row[0] for row in reader.execute(_TEXT)[1:])


CASE = Case(
    "Groups of one",
    "GROUP BY a text that one row alone has",
    "the text is shown",
    "a threshold, paid for with a delta",
    "Korolova et al. (WWW 2009)",
    {"sfumato": _sfumato, "pipelinedp": _pipelinedp, "smartnoise": _smartnoise},
    not_expressed=("python-dp",),
)
