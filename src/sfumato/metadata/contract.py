# SPDX-License-Identifier: Apache-2.0
"""What binds an account to its data (RULES 2)."""

from collections.abc import Mapping
from dataclasses import dataclass

from sfumato.errors import ContractMismatch
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.privacy.budget import Budget
from sfumato.privacy.event import Json


@dataclass(frozen=True, slots=True)
class Contract:
    """The facts stored on first use, and compared ever after.

    Paths and bounds are not in it: another path to the same data is the same account.

    Guarantees:
        another contract is refused
        no limit is part of what an answer depends on
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
        """The stored form."""
        return self.about_data() | {"epsilon": self.epsilon, "delta": self.delta}

    def about_data(self) -> dict[str, Json]:
        """What an answer depends on of the contract: everything but the limits (RULES 21)."""
        return {"dataset": self.dataset, "relation": self.relation, "units": dict(self.units)}

    def require_same(self, stored: Mapping[str, object]) -> None:
        """Refuses where the ledger has this dataset under another contract."""
        mine = self.to_json()
        different = [name for name in mine if mine[name] != stored.get(name)]
        if different:
            changes = "; ".join(
                f"{name}: now {mine[name]}, in the ledger {stored.get(name)}" for name in different
            )
            raise ContractMismatch(
                f"The ledger knows dataset {self.dataset!r} under another contract ({changes}).",
                remedy="Open it with the contract that it was created with. A new unit, relation or budget "
                "over the same data is not a fresh start.",
            )


def _unit(table: Table) -> str:
    """Whom the rows of a table are about."""
    if table.public:
        return "(public)"
    return str(table.unit) if table.unit else "(row)"
