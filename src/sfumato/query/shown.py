# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows of a session: its declarations and its account, never its data."""

from abc import abstractmethod

from sfumato.metadata.dataset import Dataset
from sfumato.query.account import Account
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
    def budget(self) -> Account:
        """What is spent and what is left."""

    def _repr_html_(self) -> str:
        rows = []
        for name, table in self.dataset.tables.items():
            for label, kind in table.columns.items():
                rows.append([name, label, repr(kind)])
        declared = html_table(["table", "column", "declared as"], rows)
        return f"{declared}{self.budget._repr_html_()}"
