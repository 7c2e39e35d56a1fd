# SPDX-License-Identifier: Apache-2.0
"""Errors as an oracle.

Given: WHERE 1 / (x - 1) > 0; WHERE CASE WHEN x = 1 THEN error('there') ELSE true END.
Broken: an error, a refund or a log line where the row is there.
Right: refused for all data, or functions without errors.
Source: Haeberlen, Pierce, Narayan (USENIX Security 2011).
"""

from functools import partial

from benchmarks.attacks.case import Case, Seen, refused
from benchmarks.attacks.questions import ALL, asked

_TESTS = ("1 / (x - 1) > 0", "CASE WHEN x = 1 THEN error('there') ELSE true END")


def _sfumato() -> Seen:
    import sfumato as sf

    tries = [
        partial(asked, {"x": [1] * 9}, f"{ALL} WHERE {test}", {"epsilon": 1}, x=sf.Integer(0, 5))
        for test in _TESTS
    ]
    # a broken one comes first
    return min(refused(ask, sf.errors.UnsupportedSql) for ask in tries)


CASE = Case(
    __doc__,
    {"sfumato": _sfumato},
    not_expressed=("opendp", "diffprivlib", "pipelinedp", "python-dp"),
)
