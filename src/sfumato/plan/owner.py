# SPDX-License-Identifier: Apache-2.0
"""How a row of a table names its unit."""

from dataclasses import dataclass

from sfumato.metadata.dataset import Dataset


@dataclass(frozen=True, slots=True)
class Owner:
    """The columns that name the unit of a row, or the way to it.

    ``columns`` of the row name it themselves; or they name a row of the table ``via``, by
    its ``keys``, whose own ``owner`` it is. A key that several units claim belongs to the
    smallest of them; a row whose key nobody has belongs to nobody and is not used.
    """

    columns: tuple[str, ...]
    via: str | None = None
    keys: tuple[str, ...] = ()
    owner: "Owner | None" = None


def owner_of(dataset: Dataset, table: str) -> Owner | None:
    """The owner of a declared table's rows; None: each row is its own unit, or the table is public.

    >>> from sfumato.metadata.table import Table
    >>> from sfumato.privacy.unit import Unit
    >>> visits = Table("visits.csv", unit=Unit("patient_id", max_rows=9))
    >>> drugs = Table("drugs.csv", unit=Unit("visit_id", via="visits.patient_id"))
    >>> owner_of(Dataset("d", {"visits": visits, "drugs": drugs}), "drugs").owner
    Owner(columns=('patient_id',), via=None, keys=(), owner=None)
    """
    unit = dataset.tables[table].unit
    if unit is None:
        return None
    if unit.via is None or unit.key is None:
        return Owner(unit.columns)
    target = unit.via.partition(".")[0]
    return Owner(unit.columns, target, (unit.key,), owner_of(dataset, target))
