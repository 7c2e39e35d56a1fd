# SPDX-License-Identifier: Apache-2.0
"""The rows of public tables: as questions read them, and of no other table."""

import datetime
from dataclasses import replace

import pyarrow as pa
import pytest

from sfumato.engines.public_rows import public_columns, public_rows
from sfumato.errors import InvalidDeclaration, InvalidSource
from sfumato.metadata.column import Array, Boolean, Category, Date, Integer, Real, Text
from sfumato.metadata.table import Table
from sfumato.metadata.timestamp import Timestamp
from sfumato.privacy.unit import Unit

COLUMNS = {
    "ward": Category({"n": "North", "s": "South"}),
    "beds": Integer(0, 99),
    "share": Real(0, 1, step="0.25"),
    "opened": Date("2000-01-01", "2030-12-31"),
    "at": Timestamp("2000-01-01", "2030-12-31", zone="Asia/Shanghai"),
    "open": Boolean(),
    "name": Text(),
    "pixels": Array(2, 0, 9),
}
ROWS = {
    "ward": ["n", "x", None],
    "beds": [12, 500, None],
    "share": [0.5, 0.3, None],
    "opened": ["2024-02-29", "1990-01-01", None],
    "at": ["2024-02-29 10:00:00", None, None],
    "open": ["true", "maybe", None],
    "name": ["Anna's", "", None],
    "pixels": [[1, 2], [3, 4], None],
}
WARDS = Table(pa.table(ROWS), columns=COLUMNS, public=True)


def test_values_are_those_that_a_question_reads():
    assert [column.name for column in public_columns(WARDS)] == list(COLUMNS)[:-1]
    day, moment = datetime.date(2024, 2, 29), datetime.datetime.fromisoformat("2024-02-29 10:00:00")
    assert public_rows("wards", WARDS, 100) == [
        ("North", 12, 0.5, day, moment, True, "Anna's"),
        (None, 99, 0.25, datetime.date(2000, 1, 1), None, None, ""),
        (None,) * 7,
    ]


def test_at_most_so_many_rows_are_read():
    assert len(public_rows("wards", WARDS, 2)) == 2


def test_no_row_of_a_private_table_is_read():
    for table in (replace(WARDS, public=False), replace(WARDS, public=False, unit=Unit("name"))):
        with pytest.raises(ValueError, match="private"):
            public_rows("wards", table, 100)


def test_what_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(InvalidSource):
        public_rows("wards", replace(WARDS, source=tmp_path / "gone.parquet"), 100)
    with pytest.raises(InvalidDeclaration):
        public_rows("wards", replace(WARDS, columns={"none": Integer(0, 9)}), 100)
