# SPDX-License-Identifier: Apache-2.0
"""What a misspelt name was likely meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches


def near(written: object, known: Iterable[str]) -> str:
    """A question that names the known name which is most like a written one, or nothing.

    >>> near("periodes", ["period", "periods", "start"])
    'Did you mean periods?'
    >>> near("xyz", ["period"]), near(7, ["period"])
    ('', '')
    """
    if not isinstance(written, str):
        return ""
    found = get_close_matches(written, list(known), n=1)
    return f"Did you mean {found[0]}?" if found else ""
