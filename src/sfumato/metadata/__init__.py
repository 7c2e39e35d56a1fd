# SPDX-License-Identifier: Apache-2.0
"""The owner's declarations about the data: tables, columns, units. They are never read off the
data.

May import: ``privacy``, ``noise``, ``exact``, ``errors``. Begin with ``column``: a type says which
values a column can have, and gives each an integer code; everything that the engine computes is on
those codes.
"""

from sfumato.metadata.column import (
    Array,
    Boolean,
    Category,
    Column,
    ColumnType,
    Date,
    Integer,
    Real,
    Text,
)
from sfumato.metadata.contract import Contract
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.metadata.timestamp import Timestamp
from sfumato.metadata.tokens import Tokens

__all__ = [
    "Array",
    "Boolean",
    "Category",
    "Column",
    "ColumnType",
    "Contract",
    "Dataset",
    "Date",
    "Integer",
    "Real",
    "Table",
    "Text",
    "Timestamp",
    "Tokens",
]
