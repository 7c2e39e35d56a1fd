# SPDX-License-Identifier: Apache-2.0
"""Refuses a measurement of several tables, such as persons and households, by a clear message."""

from sfumato.errors import WrongUse, shown


def require_one_table(table: object) -> None:
    """Raises WrongUse if several tables are named, since a synopsis measures one.

    >>> require_one_table("people")
    """
    if isinstance(table, list | tuple | set | frozenset | dict):
        names = ", ".join(map(shown, table))
        raise WrongUse(
            f"Several tables in one charge: {names}.",
            allowed="the name of one table",
            remedy="Measure each by itself: their costs add up, which is the guarantee for a unit "
            "that is in all of them. Or count households in the table of persons, by a column "
            "that says who is the head of one.",
        )
