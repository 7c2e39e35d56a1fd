# SPDX-License-Identifier: Apache-2.0
"""The labels of SPSS and Stata files, as pyreadstat writes and reads them."""

import sys
from pathlib import Path

import pandas
import pyreadstat
import pytest

from sfumato.cli.codebook_labels import described_by_labels
from sfumato.errors import WrongUse

FRAME = pandas.DataFrame({"sex": [1.0, 2.0], "age": [30.0, 41.0], "job": ["a", "b"]})
LABELS = {"sex": {1: "Male", 2: "Female", 9: "Refused"}, "age": {99: "99 and more"}}
JOB = {"type": "text"}


def test_spss(tmp_path: Path) -> None:
    path = tmp_path / "people.sav"
    pyreadstat.write_sav(
        FRAME, path, variable_value_labels=LABELS, missing_ranges={"sex": [9], "age": [-1]},
        variable_measure={"sex": "nominal", "age": "scale", "job": "nominal"},
    )  # fmt: skip
    assert dict(described_by_labels(path)) == {
        "sex": {"type": "category", "values": {"1": "Male", "2": "Female"}, "missing": ["9"]},
        "age": {"missing": ["-1"]},
        "job": JOB,
    }


def test_stata(tmp_path: Path) -> None:
    path = tmp_path / "people.dta"
    pyreadstat.write_dta(FRAME, path, variable_value_labels={"sex": {1: "Male", 2: "Female"}})
    assert dict(described_by_labels(path)) == {
        "sex": {"type": "category", "values": {"1": "Male", "2": "Female"}}, "age": {}, "job": JOB,
    }  # fmt: skip


def test_the_extra_is_named_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(WrongUse, match=r"pip install 'sfumato\[codebooks\]'"):
        list(described_by_labels(tmp_path / "people.sav"))
