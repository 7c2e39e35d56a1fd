# SPDX-License-Identifier: Apache-2.0
"""Which declared table and column a name means."""

from dataclasses import dataclass

from sqlglot import exp

from sfumato.errors import UnknownName
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.sql.reject import reject, require_only


@dataclass(frozen=True, slots=True)
class Scope:
    """The one table of a question, and the names under which it is known."""

    name: str
    alias: str
    table: Table

    def column(self, node: exp.Column) -> Column:
        """The declared column that a node names; lists the declared ones if there is none."""
        self._require_table(node)
        found = self.table.column(node.name)
        if found is None:
            raise UnknownName(
                f"Table {self.name!r} has no declared column {node.name!r}.",
                allowed=", ".join(self.table.columns) or "none: no column is declared",
                remedy="Use one of these, or declare the column in columns= with its values or bounds.",
            )
        return found

    def is_unit(self, node: exp.Expr) -> bool:
        """Whether a node names the unit column, declared as a column or not."""
        if not isinstance(node, exp.Column) or self.table.unit is None:
            return False
        self._require_table(node)
        return node.name.lower() == self.table.unit.column.lower()

    def _require_table(self, node: exp.Column) -> None:
        """Refuses ``other.column`` and ``table.*``."""
        require_only(node, "this", "table")
        if isinstance(node.this, exp.Star):
            raise reject(node.this)
        prefix = node.table
        if prefix and prefix.lower() not in {self.alias.lower(), self.name.lower()}:
            raise UnknownName(f"No table {prefix!r} in this question.", allowed=self.alias)


def scope_of(select: exp.Select, dataset: Dataset) -> Scope:
    """The declared table of FROM."""
    source = select.args.get("from_")
    if source is None:
        raise UnknownName("A question without FROM.", allowed=", ".join(dataset.tables))
    table = source.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        if isinstance(table, exp.Table) and isinstance(table.this, exp.Func):
            raise UnknownName("FROM a function.", allowed=", ".join(dataset.tables), remedy="Ask a declared table.")
        raise reject(table)
    require_only(table, "this", "alias")
    if table.args.get("alias") is not None:
        require_only(table.args["alias"], "this")
    for name, declared in dataset.tables.items():
        if name.lower() == table.name.lower():
            return Scope(name, table.alias or name, declared)
    raise UnknownName(f"No table {table.name!r}.", allowed=", ".join(dataset.tables))
