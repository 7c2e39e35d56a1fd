# SPDX-License-Identifier: Apache-2.0
"""Reports come as lists or as any binary column of Arrow, and what is of another size is counted."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import WrongUse
from sfumato.telemetry.rows import rows_of


@given(st.lists(st.binary(max_size=4), max_size=20), st.integers(0, 5))
def test_every_form_gives_the_same_rows(reports, skipped):
    good = [report for report in reports if len(report) == 3]
    wanted = [list(report) for report in good]
    for kind in (pa.binary(), pa.large_binary()):
        column = pa.array(reports, kind)
        chunked = pa.chunked_array([column[:2], column[2:]], kind)
        for form in (reports, tuple(reports), column, chunked):
            rows, wrong = rows_of(form, 3)
            assert rows.tolist() == wanted and wrong == len(reports) - len(good)
    fixed = pa.array(good, pa.binary(3))
    assert rows_of(fixed[skipped:], 3)[0].tolist() == wanted[skipped:]
    assert rows_of(fixed, 4)[1] == len(good)


def test_what_is_missing_is_no_report():
    column = pa.array([b"abc", None, b"def"])
    rows, wrong = rows_of(column, 3)
    assert rows.tolist() == [[97, 98, 99], [100, 101, 102]] and wrong == 1


@pytest.mark.parametrize("reports", ["abc", b"abc", [1], None, pa.array([1]), pa.array(["abc"])])
def test_what_is_no_reports_is_refused(reports):
    with pytest.raises(WrongUse):
        rows_of(reports, 3)
