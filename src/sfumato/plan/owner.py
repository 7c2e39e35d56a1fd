# SPDX-License-Identifier: Apache-2.0
"""Which privacy unit each row of a table belongs to, found by columns or through other tables."""

from dataclasses import dataclass

from sfumato.metadata.dataset import Dataset


@dataclass(frozen=True, slots=True)
class Owner:
    """A rule that gives the privacy unit of each row of a table: by the row's own columns, or
    through another table.

    Without ``via``, ``columns`` hold the unit's id. With ``via``, they are matched with the columns
    ``keys`` of that table, and the row belongs to the unit of the matching row, which ``owner``
    finds. If rows of several units match, the unit with the smallest id is taken. A row without a
    match has no unit and is ignored. ``unordered``: two columns that hold the same ids
    in the other order are the same unit.
    """

    columns: tuple[str, ...]
    via: str | None = None
    keys: tuple[str, ...] = ()
    owner: "Owner | None" = None
    unordered: bool = False


def owner_of(dataset: Dataset, table: str) -> Owner | None:
    """Returns the rule that gives the privacy unit of each row of a declared table.

    None if each row is its own unit, or if the table is public.

    Raises:
        UnsupportedSql: a row of the table is about two units (``sf.Node``).

    >>> from sfumato.metadata.table import Table
    >>> from sfumato.privacy.unit import Unit
    >>> visits = Table("visits.csv", unit=Unit("patient_id", max_rows=9))
    >>> drugs = Table("drugs.csv", unit=Unit("visit_id", via="visits.patient_id"))
    >>> owner_of(Dataset("d", {"visits": visits, "drugs": drugs}), "drugs").owner.columns
    ('patient_id',)
    """
    unit = dataset.row_unit(table)
    if unit is None:
        return None
    if unit.via is None or unit.key is None:
        return Owner(unit.columns, unordered=unit.unordered)
    target = unit.via.partition(".")[0]
    return Owner(unit.columns, target, (unit.key,), owner_of(dataset, target))
