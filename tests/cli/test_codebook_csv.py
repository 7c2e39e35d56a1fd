# SPDX-License-Identifier: Apache-2.0
"""Codebooks of two columns."""

from pathlib import Path

from sfumato.cli.codebook_csv import described_by_csv

BOOK = """\
column,values
age,0..120
age,-9=missing
weight,0.5 .. 250
born,1900-01-01..2026-12-31
sex,F=female; M=male; X=missing
job,text
ward,A
ward,B=Ward of B
pay,<=50K; >50K; >=1M=rich

"""


def test_bounds_values_labels_and_missing_codes(tmp_path: Path) -> None:
    path = tmp_path / "book.csv"
    path.write_text(BOOK, encoding="utf-8-sig")
    assert dict(described_by_csv(path)) == {
        "age": {"type": "integer", "lower": 0, "upper": 120, "missing": ["-9"]},
        "weight": {"type": "real", "lower": "0.5", "upper": 250},
        "born": {"type": "date", "lower": "1900-01-01", "upper": "2026-12-31"},
        "sex": {"type": "category", "values": {"F": "female", "M": "male"}, "missing": ["X"]},
        "job": {"type": "text"},
        "ward": {"type": "category", "values": {"A": "A", "B": "Ward of B"}},
        "pay": {"type": "category", "values": {"<=50K": "<=50K", ">50K": ">50K", ">=1M": "rich"}},
    }
