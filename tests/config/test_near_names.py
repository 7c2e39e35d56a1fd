# SPDX-License-Identifier: Apache-2.0
"""A misspelt name, and the known one that is most like it."""

import pytest

from sfumato.config.near_names import near


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("periodes", "Did you mean periods?"),
        ("min-batch", "Did you mean min_batch?"),
        ("zzz", ""),
        ("", ""),
        (7, ""),
        (None, ""),
    ],
)
def test_a_name_is_suggested_only_where_one_is_alike(written, said):
    assert near(written, ("period", "periods", "min_batch")) == said
