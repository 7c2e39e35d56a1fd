# SPDX-License-Identifier: Apache-2.0
"""How the rows of a table are assigned to privacy units."""

from dataclasses import dataclass

from sfumato.metadata.dataset import Dataset


@dataclass(frozen=True, slots=True)
class Owner:
    """The columns that identify the unit of a row, directly or through another table.

    Without ``via``, ``columns`` are the unit's id. With it, they match ``keys`` of the table
    ``via``, and the row belongs to the unit of the matching row, by that table's ``owner``. A key
    that rows of several units have belongs to the unit with the smallest id. A row whose key
    matches nothing has no unit and is ignored. ``unordered``: two columns that hold the same ids in
    the other order are the same unit.
    """

    columns: tuple[str, ...]
    via: str | None = None
    keys: tuple[str, ...] = ()
    owner: "Owner | None" = None
    unordered: bool = False


def owner_of(dataset: Dataset, table: str) -> Owner | None:
    """The owner of the rows of a declared table.

    None if each row is its own unit, or if the table is public.

    Raises:
        UnsupportedSql: a row of the table is about two units (``sf.Node``).

    >>> from sfumato.metadata.table import Table
    >>> from sfumato.privacy.unit import Unit
    >>> visits = Table("visits.csv", unit=Unit("patient_id", max_rows=9))
    >>> drugs = Table("drugs.csv", unit=Unit("visit_id", via="visits.patient_id"))
    >>> owner_of(Dataset("d", {"visits": visits, "drugs": drugs}), "drugs").owner
    Owner(columns=('patient_id',), via=None, keys=(), owner=None)
    """
    unit = dataset.row_unit(table)
    if unit is None:
        return None
    if unit.via is None or unit.key is None:
        return Owner(unit.columns, unordered=unit.unordered)
    target = unit.via.partition(".")[0]
    return Owner(unit.columns, target, (unit.key,), owner_of(dataset, target))
