# SPDX-License-Identifier: Apache-2.0
"""A question that fails on one row only."""

from functools import partial

from benchmarks.attacks.case import Case, Seen, refused

_TESTS = ("1 / (x - 1) > 0", "CASE WHEN x = 1 THEN error('there') ELSE true END")


def _sfumato() -> Seen:
    import sfumato as sf
    from benchmarks.attacks.ours import asked

    text = "SELECT COUNT(*) AS n FROM t WHERE "
    tries = [
        partial(asked, {"x": [1] * 9}, text + test, {"epsilon": 1}, x=sf.Integer(0, 5))
        for test in _TESTS
    ]
    # a broken one comes first
    return min(refused(ask, sf.errors.UnsupportedSql) for ask in tries)


CASE = Case(
    "Errors as an oracle",
    f"WHERE {_TESTS[0]}; WHERE {_TESTS[1]}",
    "an error, a refund or a log line where the row is there",
    "refused for all data, or functions without errors",
    "Haeberlen, Pierce, Narayan (USENIX Security 2011)",
    {"sfumato": _sfumato},
    not_expressed=("opendp", "diffprivlib", "pipelinedp", "python-dp"),
)
