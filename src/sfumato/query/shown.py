# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows of a session, and completes: declarations and the account, never data."""

from abc import abstractmethod
from collections.abc import Callable

from sfumato.errors import UnknownName, shown
from sfumato.metadata.dataset import Dataset
from sfumato.query.account import Account
from sfumato.query.answer import Answer
from sfumato.query.dataframe import Frame, frame
from sfumato.query.preview import Preview
from sfumato.query.publishing import Publishing
from sfumato.query.render import html_table


class Shown(Publishing):
    """The form of a session in a notebook."""

    @property
    @abstractmethod
    def dataset(self) -> Dataset:
        """The declarations, without the sources of the tables."""

    @property
    @abstractmethod
    def query(self) -> Callable[..., Answer]:
        """Answers a statement."""

    @property
    @abstractmethod
    def preview(self) -> Callable[..., Preview]:
        """The cost and the error of a statement."""

    @property
    @abstractmethod
    def budget(self) -> Account:
        """What is spent and what is left."""

    def table(self, name: str) -> Frame:
        """Begins a question without SQL: ``where``, ``join``, ``group_by``, ``agg``, ``query``."""
        tables = self.dataset.tables
        if name not in tables:
            raise UnknownName(f"No table {shown(name)}.", allowed=", ".join(tables))
        columns = tuple((each, tuple(table.columns)) for each, table in tables.items())
        return frame(name, self.query, self.preview, columns)

    def __getitem__(self, name: str) -> Frame:
        """``table(name)``; a notebook completes the names of tables after ``session["``."""
        return self.table(name)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.dataset.tables)

    def _repr_html_(self) -> str:
        rows = []
        for name, table in self.dataset.tables.items():
            for label, kind in table.columns.items():
                rows.append([name, label, repr(kind)])
        declared = html_table(["table", "column", "declared as"], rows)
        return f"{declared}{self.budget._repr_html_()}"
