# SPDX-License-Identifier: Apache-2.0
"""The contract that binds a ledger account to its dataset (RULES 2)."""

from collections.abc import Mapping
from dataclasses import dataclass

from sfumato.errors import ContractMismatch
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.privacy.budget import Budget
from sfumato.privacy.event import Json


@dataclass(frozen=True, slots=True)
class Contract:
    """The declarations that are stored when an account is created, and compared at every later use.

    Paths and bounds are not part of it: the same data at another path has the same account.

    Guarantees:
        another contract is refused
        no limit is part of what an answer depends on

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

    @classmethod
    def of(cls, dataset: Dataset, budget: Budget) -> "Contract":
        """The contract of a dataset under a budget."""
        units = {name: _unit(table) for name, table in dataset.tables.items()}
        return cls(
            dataset.name, dataset.relation.value, units, str(budget.epsilon), str(budget.delta)
        )

    def to_json(self) -> dict[str, Json]:
        """The JSON form that the ledger stores."""
        return self.about_data() | {"epsilon": self.epsilon, "delta": self.delta}

    def about_data(self) -> dict[str, Json]:
        """The part of the contract that identifies answers: all but the limits (RULES 21)."""
        return {"dataset": self.dataset, "relation": self.relation, "units": dict(self.units)}

    def require_same(self, stored: Mapping[str, object]) -> None:
        """Refuses if the ledger has stored another contract for this dataset."""
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
