# SPDX-License-Identifier: Apache-2.0
"""A part of a page that is written from results, between two marks."""

from collections.abc import Mapping
from typing import Any


def rewritten(page: str, begin: str, block: str, end: str) -> str:
    """The page with a block, marks included, in place of the one that it has.

    Raises:
        ValueError: a page without both marks, in their order.
    """
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"No {begin} followed by {end} in the page.")
    return before + block + after


def measured_on(results: Mapping[str, Any]) -> str:
    """The machine and the day."""
    machine = results["machine"]
    return f"{machine['processor']}, {machine['cores']} cores, load {machine['load']:g}; {results['date']}"


def cells(*each: str) -> str:
    """A line of a table."""
    return f"| {' | '.join(each)} |"
