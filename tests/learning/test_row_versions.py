# SPDX-License-Identifier: Apache-2.0
"""Versions of rows hang on which objects they are, never on what is in them."""

import numpy as np
import pytest

from sfumato.errors import WrongUse
from sfumato.learning.row_versions import RowVersions

ROWS, LABELS = np.arange(4), np.arange(4)


def test_a_pair_of_objects_has_one_version() -> None:
    versions = RowVersions()
    first = versions.of(ROWS, LABELS, None)
    assert versions.of(ROWS, LABELS, None) == versions.of(ROWS, LABELS, first) == first
    others = [(ROWS.copy(), LABELS), (ROWS, LABELS.copy()), (ROWS, None), (LABELS, ROWS)]
    assert len({first, *(versions.of(*pair, None) for pair in others)}) == 5


def test_a_stated_version_is_of_one_pair_as_long_as_it_exists() -> None:
    versions = RowVersions()
    rows = ROWS.copy()
    assert versions.of(rows, None, "2026") == "2026"
    with pytest.raises(WrongUse, match="other rows"):
        versions.of(ROWS, None, "2026")
    del rows
    assert versions.of(ROWS, None, "2026") == "2026" and len(versions.pairs) == 1


def test_a_list_is_another_one_each_time() -> None:
    versions = RowVersions()
    rows = [1, 2]
    assert versions.of(rows, None, None) != versions.of(rows, None, None)
