# SPDX-License-Identifier: Apache-2.0
"""The contract: the declarations of a dataset that its ledger account is bound to (RULES 2)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sfumato.errors import ContractMismatch
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.privacy.budget import Budget
from sfumato.privacy.event import Json


@dataclass(frozen=True, slots=True)
class Contract:
    """The declarations that the ledger stores when it creates the privacy account of a dataset, and
    compares at every later use.

    Paths and bounds of columns are not part of it: the same data at another path has the same
    account. ``reading`` says how the texts of each table's file are read, where this is declared.
    It is neither stored nor compared, since the owner may correct it, but keys of answers depend on
    it.

    Guarantees:
        another contract is refused
        no limit is part of what an answer depends on
        another reading of texts is another answer

    >>> from sfumato.metadata.table import Table
    >>> data = Dataset("clinic", {"visits": Table("visits.parquet", unit=None)})
    >>> Contract.of(data, Budget(3)).relation
    'add-remove'
    """

    dataset: str
    relation: str
    units: Mapping[str, str]
    epsilon: str
    delta: str
    reading: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, dataset: Dataset, budget: Budget) -> "Contract":
        """Returns the contract of a dataset and the budget of its account."""
        units = {name: _unit(table) for name, table in dataset.tables.items()}
        readings = {name: table.reading for name, table in dataset.tables.items() if table.reading}
        return cls(
            dataset.name,
            dataset.relation.value,
            units,
            str(budget.epsilon),
            str(budget.delta),
            readings,
        )

    def to_json(self) -> dict[str, Json]:
        """Returns the contract as the JSON that the ledger stores."""
        return self._about() | {"epsilon": self.epsilon, "delta": self.delta}

    def about_data(self) -> dict[str, Json]:
        """Returns the declarations on which answers depend, as JSON; the limits (budgets) are left
        out.

        They are the data set, its units, the neighbour relation, and how strings are read (RULES
        21).
        """
        if not self.reading:
            return self._about()
        readings: dict[str, Json] = {name: dict(each) for name, each in self.reading.items()}
        return self._about() | {"reading": readings}

    def _about(self) -> dict[str, Json]:
        return {"dataset": self.dataset, "relation": self.relation, "units": dict(self.units)}

    def require_same(self, stored: Mapping[str, object]) -> None:
        """Raises ContractMismatch if the contract differs from the JSON that the ledger stores."""
        mine = self.to_json()
        different = [name for name in mine if mine[name] != stored.get(name)]
        if different:
            changes = "; ".join(
                f"{name}: now {mine[name]}, in the ledger {stored.get(name)}" for name in different
            )
            raise ContractMismatch(
                f"The ledger knows dataset {self.dataset!r} under another contract ({changes}).",
                remedy="Open it with the contract that it was created with. "
                "A new unit, relation or budget over the same data is not a fresh start.",
            )


def _unit(table: Table) -> str:
    """The privacy unit of a table, as a string."""
    if table.public:
        return "(public)"
    return str(table.unit) if table.unit else "(row)"
