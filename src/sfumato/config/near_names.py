# SPDX-License-Identifier: Apache-2.0
"""Suggests a known name for a misspelt one, in error messages."""

from collections.abc import Iterable
from difflib import get_close_matches


def near(written: object, known: Iterable[str]) -> str:
    """Returns "Did you mean ...?" with the known name most similar to ``written``; "" without one.

    >>> near("periodes", ["period", "periods", "start"])
    'Did you mean periods?'
    >>> near("xyz", ["period"]), near(7, ["period"])
    ('', '')
    """
    if not isinstance(written, str):
        return ""
    found = get_close_matches(written, list(known), n=1)
    return f"Did you mean {found[0]}?" if found else ""
